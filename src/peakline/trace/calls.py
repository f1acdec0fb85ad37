"""What a call does that keeps the thread of a training loop: waits, reads, writes, copies.

Known by the words of the frameworks, of Python's library and of NumPy; what is in no list is work.
"""

from __future__ import annotations

import re
from enum import IntEnum

from peakline.text import remembered
from peakline.trace.frames import Frame, frame_of


class Call(IntEnum):
    """What an event says that its caller does."""

    WORK = 0
    READ = 1
    """A value is read from the device, which first has to finish what it is doing."""
    TRANSFER = 2
    """A tensor is copied to a device, or between two."""
    SLEEP = 3
    LOCK = 4
    """A thread waits for another: a lock, an event, a queue, a join, a pipe."""
    FILE = 5
    """A file, or an archive, is written."""
    PRINT = 6
    COLLECT = 7
    """Python collects garbage."""
    COPY = 8
    """An object is copied with all that it refers to."""
    HISTOGRAM = 9
    """Values are counted for a histogram."""


WORDS = {
    Call.WORK: "Python code",
    Call.READ: "reading values of the device",
    Call.TRANSFER: "copies to the device",
    Call.SLEEP: "sleep",
    Call.LOCK: "waiting for another thread",
    Call.FILE: "writing files",
    Call.PRINT: "printing",
    Call.COLLECT: "garbage collection",
    Call.COPY: "deep copies",
    Call.HISTOGRAM: "counting values for histograms",
}
"""What a person calls them."""

_FRAMEWORK = {
    Call.READ: frozenset(
        "__float__ __int__ __bool__ __index__ __complex__ __array__ __format__ _value item tolist "
        "numpy _numpy _numpy_internal block_until_ready device_get _to_np "
        "_single_device_array_to_np_array_did_copy is_nonzero".split()
    ),
    Call.TRANSFER: frozenset(
        "device_put device_put_sharded device_put_replicated _device_put_impl batched_device_put "
        "shard_args pin_memory convert_to_eager_tensor stage".split()
    ),
    Call.FILE: frozenset(
        "save save_checkpoint save_weights save_model save_file write_record write_file "
        "save_pretrained torch_save _save".split()
    ),
    Call.HISTOGRAM: frozenset(("add_histogram", "make_histogram", "histogram_raw")),
}
_ANY = {
    Call.READ: frozenset("item tolist".split()),
    Call.SLEEP: frozenset("sleep usleep nanosleep".split()),
    Call.LOCK: frozenset(
        "acquire acquire_lock wait wait_for select poll epoll_wait recv recv_bytes flock "
        "lockf kevent sigwait waitpid wait4".split()
    ),
    Call.FILE: frozenset(
        "write writelines fsync fdatasync flush dump savez savez_compressed save savetxt savefig "
        "to_csv to_parquet copyfile replace_file write_record write_bytes write_text".split()
    ),
    Call.PRINT: frozenset(("print", "emit")),
    Call.COPY: frozenset(("deepcopy",)),
    Call.HISTOGRAM: frozenset(
        "histogram histogram2d histogramdd histogram_bin_edges add_histogram make_histogram".split()
    ),
}
_WAITS_OF = {
    "threading.py": "__enter__ acquire wait wait_for join _acquire_restore _wait_for_tstate_lock",
    "queue.py": "get put join",
    "queues.py": "get put join join_thread",
    "connection.py": "recv recv_bytes recv_bytes_into poll wait accept _poll _recv _recv_bytes",
    "pool.py": "get wait join map starmap next",
    "process.py": "join",
    "popen_fork.py": "wait poll",
    "popen_forkserver.py": "poll",
    "popen_spawn_posix.py": "poll",
    "synchronize.py": "__enter__ acquire wait wait_for",
    "managers.py": "_callmethod",
    "_base.py": "result exception wait result_iterator",
    "subprocess.py": "wait communicate _wait _try_wait _communicate",
    "selectors.py": "select",
}
"""Functions of Python's library that return when another thread or process lets them: by the files
of CPython's ``Lib``, ``Lib/multiprocessing`` and ``Lib/concurrent/futures``."""
_LIBRARY = {file: frozenset(functions.split()) for file, functions in _WAITS_OF.items()}
_LOCKS = re.compile(r"_thread\.\w*[lL]ock\.__enter__$|_multiprocessing\.SemLock\.__enter__$")
_UNTYPED = frozenset(("__enter__", "get"))
_QUEUES = re.compile(r"(?:.*\.)?\w*Queue\.(?:get|put)$")
_EVENTS = (
    (Call.READ, re.compile(
        r"aten::(?:item|_local_scalar_dense|is_nonzero)$|np\.asarray\(jax\.Array\)|"
        r"(?:cu|cuda|hip)\w*Synchronize|\bblock_until_ready\b"
    )),
    (Call.TRANSFER, re.compile(r"DevicePut|BatchedDevicePut|(?:cuda|hip)MemcpyAsync$")),
    (Call.FILE, re.compile(r"(?:.*:)?(?:SaveV2|SaveSlices|MergeV2Checkpoints|WriteFile)$")),
    (Call.PRINT, re.compile(r"(?:.*:)?(?:PrintV2|Print)$")),
)  # fmt: skip


@remembered(1 << 16)
def call_of(name: str) -> Call:
    """What an event called so does; `WORK` for the program's own frames and for all else."""
    frame = frame_of(name)
    if frame is None:
        return next((call for call, known in _EVENTS if known.match(name)), Call.WORK)
    if frame.whose == "program":
        return Call.WORK
    function = frame.function.rpartition(".")[2]
    if function == "collect" and (not frame.file or frame.file.endswith("gc.py")):
        return Call.COLLECT
    if _is_wait(frame, function):
        return Call.LOCK
    if frame.whose == "framework":
        for call, functions in _FRAMEWORK.items():
            if function in functions:
                return call
        if frame.file:
            return Call.WORK
    return next((call for call, functions in _ANY.items() if function in functions), Call.WORK)


def _is_wait(frame: Frame, function: str) -> bool:
    """Whether a frame of a library waits for another thread or process, as no list of functions
    alone says: by its file, or in C by the type that it is a method of.

    TensorFlow's and JAX's tracer has no type for methods written in C. Of the context managers
    written in C a lock is the one that takes any time (``lock.__enter__()``), and of what has a
    method ``get`` a ``SimpleQueue``: a dictionary answers at once.
    """
    if frame.file:
        return function in _LIBRARY.get(frame.file.replace("\\", "/").rpartition("/")[2], ())
    if frame.function in _UNTYPED:
        return True
    return bool(_LOCKS.match(frame.function) or _QUEUES.match(frame.function))
