/* Files that are cut short while they are mapped.
 *
 * To read a page of a mapped file that the file has no more raises SIGBUS (mmap(2)), which would end
 * the process. In a range that is guarded, the handler puts pages of zeros in place of what is gone
 * and remembers it: whoever reads goes on, and finds out afterwards that what was read is void.
 * Everything in the handler is safe at any moment: it calls mmap and touches atomic numbers.
 *
 * Any other bus error goes to the handler that was there before.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef _WIN32

/* A file that is mapped cannot be cut short there. */
static PyObject *guard(PyObject *module, PyObject *arguments) { return PyLong_FromLong(0); }
static PyObject *is_lost(PyObject *module, PyObject *slot) { Py_RETURN_FALSE; }
static PyObject *forget(PyObject *module, PyObject *slot) { Py_RETURN_NONE; }

#else

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

enum { MOST = 1024 };

typedef struct {
    atomic_uintptr_t start;
    atomic_size_t length;
    atomic_int lost;
} range;

static range ranges[MOST];
static uintptr_t page_bytes;
static struct sigaction before;
static atomic_uintptr_t passed_on;

static void pass_on(int number, siginfo_t *info, void *context) {
    uintptr_t at = (uintptr_t) info->si_addr;
    /* The same again: the other handler could not help, and perhaps calls this one. */
    int is_repeated = atomic_exchange(&passed_on, at + 1) == at + 1;
    if (!is_repeated && before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (!is_repeated && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else if (before.sa_handler != SIG_IGN || info->si_code > 0) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    uintptr_t at = (uintptr_t) info->si_addr;
    for (int slot = 0; info->si_code > 0 && slot < MOST; slot++) {
        uintptr_t start = atomic_load(&ranges[slot].start);
        size_t length = atomic_load(&ranges[slot].length);
        if (start == 0 || at < start || at - start >= length) continue;
        uintptr_t page = at & ~(page_bytes - 1);
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
        atomic_store(&ranges[slot].lost, 1);
        if (mmap((void *) page, start + length - page, PROT_READ, flags, -1, 0) != MAP_FAILED) {
            return;
        }
    }
    pass_on(number, info, context);
}

/* Other code may have put its handler in our place: faulthandler does when it is enabled. */
static int install(void) {
    struct sigaction now, ours;
    if (sigaction(SIGBUS, NULL, &now) != 0) return 0;
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error) return 1;
    page_bytes = (uintptr_t) sysconf(_SC_PAGESIZE);
    before = now;
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGBUS, &ours, NULL) == 0;
}

static PyObject *guard(PyObject *module, PyObject *arguments) {
    unsigned long long start;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "Kn", &start, &length)) return NULL;
    if (!install()) return PyLong_FromLong(-1);
    for (int slot = 0; slot < MOST; slot++) {
        uintptr_t free = 0;
        /* Of the length 0 until it is all known. */
        if (atomic_compare_exchange_strong(&ranges[slot].start, &free, (uintptr_t) start)) {
            atomic_store(&ranges[slot].lost, 0);
            atomic_store(&ranges[slot].length, (size_t) length);
            return PyLong_FromLong(slot);
        }
    }
    return PyLong_FromLong(-1);
}

static int slot_of(PyObject *number) {
    long slot = PyLong_AsLong(number);
    if (slot == -1 && PyErr_Occurred()) return -1;
    if (slot >= 0 && slot < MOST) return (int) slot;
    PyErr_SetString(PyExc_IndexError, "no such slot");
    return -1;
}

static PyObject *is_lost(PyObject *module, PyObject *number) {
    int slot = slot_of(number);
    return slot < 0 ? NULL : PyBool_FromLong(atomic_load(&ranges[slot].lost));
}

static PyObject *forget(PyObject *module, PyObject *number) {
    int slot = slot_of(number);
    if (slot < 0) return NULL;
    atomic_store(&ranges[slot].length, 0);
    atomic_store(&ranges[slot].start, 0);
    Py_RETURN_NONE;
}

#endif

static PyMethodDef functions[] = {
    {"guard", guard, METH_VARARGS, "guard(address, length): the slot of a range; -1: none is free"},
    {"is_lost", is_lost, METH_O, "is_lost(slot): whether a page of the range was gone"},
    {"forget", forget, METH_O, "forget(slot): guard the range no longer"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "bus_errors", .m_methods = functions, .m_slots = slots,
};

PyMODINIT_FUNC PyInit_bus_errors(void) { return PyModuleDef_Init(&definition); }
