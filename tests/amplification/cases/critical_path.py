"""RunMetadata whose critical path takes more to find than that of any program."""

from tests.amplification.wire import many, number, part, repeated

_STEP_STATS, _PARTITION = 1, 3
_ZERO = 1_700_000_000_000_000
_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def _run(name: str, start: int, took: int, label: str = "") -> bytes:
    times = number(2, _ZERO + start) + number(4, took) + number(5, took)
    return part(2, part(1, name) + times + (part(8, label) if label else b""))


def _stats(runs: bytes, *more: bytes, device: str = _CPU) -> bytes:
    return part(_STEP_STATS, part(1, part(1, device) + runs) + b"".join(more))


def _node(name: str, *inputs: str, device: str = "") -> bytes:
    ends = b"".join(part(3, one) for one in inputs)
    where = part(4, device) if device else b""
    return part(1, part(1, name) + part(2, "X") + ends + where)


def _graph(*nodes: bytes) -> bytes:
    return part(_PARTITION, b"".join(nodes))


def self_loop(size: int) -> bytes:
    """One node that waits for itself; all its runs are at one time."""
    return _stats(many(size, _run("a", 0, 0))) + _graph(_node("a", "a", device=_CPU))


def long_self_loop(size: int) -> bytes:
    """One node with a long name, which is that of every piece of the path."""
    name = "a" * (size // 3)
    runs = _run(name, 0, 0, f"{name} = X(a)") + repeated(size // 3, lambda n: _run("a", n, 1))
    return _stats(runs) + _graph(_node("a", "a", device=_CPU))


def never_recorded(size: int) -> bytes:
    """A chain of runs, each of which also waits for a chain that never ran."""
    count, unknown = size // 160, size // 52
    runs = b"".join(_run(f"n{n}", 3 * n, 2) for n in range(count))
    nodes = (_node(f"n{n}", f"n{n - 1}" if n else "u0", "u0", device=_CPU) for n in range(count))
    return _stats(runs) + _graph(*nodes, *(_node(f"u{n}", f"u{n + 1}") for n in range(unknown)))


def recorded_between(size: int) -> bytes:
    """As `never_recorded`, each of which waits for a run of its own: ever more stands behind."""
    count = size // 160
    runs = b"".join(_run(f"n{n}", 3 * n, 2) + _run(f"r{n}", 0, 0) for n in range(count))
    nodes = (_node(f"n{n}", f"n{n - 1}" if n else "u0", f"u{n}", device=_CPU) for n in range(count))
    between = (_node(f"u{n}", f"u{n - 1}" if n else "r0", f"r{n}") for n in range(count))
    own = (_node(f"r{n}") for n in range(count))
    return _stats(runs) + _graph(*nodes, *between, *own)


def entered_anywhere(size: int) -> bytes:
    """A circle of nodes that never ran, into which a chain of runs leads at every place."""
    count = size // 120
    runs = b"".join(_run(f"n{n}", 3 * n, 2) for n in range(count))
    nodes = (_node(f"n{n}", f"n{n - 1}" if n else "u0", f"u{n}", device=_CPU) for n in range(count))
    circle = (_node(f"u{n}", f"u{(n + 1) % count}") for n in range(count))
    return _stats(runs) + _graph(*nodes, *circle)


def never_recorded_inputs(size: int) -> bytes:
    """A node in a loop, with very many inputs that never ran."""
    runs = repeated(size // 2, lambda n: _run("b", 2 * n, 1))
    names = [f"{n}" for n in range(size // 60)]
    return _stats(runs) + _graph(_node("b", "b", *names, device=_CPU), *map(_node, names))


def recorded_inputs(size: int) -> bytes:
    """A node in a loop, with very many inputs that ran once."""
    names = [f"{n}" for n in range(size // 120)]
    runs = repeated(size // 2, lambda n: _run("b", 2 * n + 9, 1))
    once = b"".join(_run(name, n % 7, 1) for n, name in enumerate(names))
    return _stats(runs + once) + _graph(_node("b", "b", *names, device=_CPU), *map(_node, names))


def shared_inputs(size: int) -> bytes:
    """A chain, each of which waits for all the nodes of one loop, too."""
    count = max(2, int((size / 8) ** 0.5))
    names = [f"{n}" for n in range(count)]
    runs = b"".join(_run(f"n{n}", 10**6 + 3 * n, 2) for n in range(count))
    loops = repeated(size // 2, lambda n: _run(names[n % count], n, 1))
    nodes = (_node(f"n{n}", f"n{n - 1}" if n else "0", *names) for n in range(count))
    return _stats(loops + runs) + _graph(*nodes, *map(_node, names))


def late_starts(size: int) -> bytes:
    """Runs of one node that were computed before they began."""
    late = part(2, part(1, "a") + number(2, _ZERO + 10**9) + number(3, -(10**9)) + number(5, 1))
    loop = repeated(size // 2, lambda n: _run("b", n, 1))
    return _stats(many(size // 2, late) + loop) + _graph(_node("a"), _node("b", "a", "b"))


def labels(size: int) -> bytes:
    """A run of one node again and again: a label says what it waits for, which never ran."""
    chain = (_node(f"u{n}", f"u{n + 1}") for n in range(size // 60))
    loop = repeated(size // 2, lambda n: _run("b", n, 1, f"b = X(b, u{n % 9})"))
    return _stats(loop) + _graph(*chain)


def launches(size: int) -> bytes:
    """Kernels on one stream, and very many runs that may have launched each."""
    host = repeated(size // 2, lambda n: _run("a", n, 0))
    kernels = repeated(size // 2, lambda n: _run("a:X", size // 52 + n, 1))
    return _stats(host, part(1, part(1, "/device:GPU:0/stream:1") + kernels))


def kernels_at_once(size: int) -> bytes:
    """Kernels on one stream, all at one time."""
    return _stats(many(size, _run("a:X", 0, 0)), device="/device:GPU:0/stream:1")


def long_device(size: int) -> bytes:
    """A path on a device with a long name."""
    device = "/device:" + "x" * (size // 3)
    return _stats(many(size // 3, _run("a", 0, 0, "a = X(a)")), device=device)


def senders(size: int) -> bytes:
    """Very many sends of one tensor, and very many calls that brought it."""
    attrs = b"".join(
        part(5, part(1, key) + part(2, part(2, value)))
        for key, value in (("tensor_name", "t"), ("recv_device", "b"))
    )

    def send(n: int) -> bytes:
        own = part(5, part(1, "send_device") + part(2, part(2, f"{n}")))
        return part(1, part(1, f"s{n}") + part(2, "_Send") + part(3, f"r{n}") + attrs + own)

    sends = repeated(size // 2, send)
    count = size // 200
    receive = part(1, part(1, "q") + part(2, "_Recv") + attrs)
    runs = b"".join(_run(f"r{n}", n, 1) for n in range(count))
    calls = repeated(size // 4, lambda n: _run("RecvTensor", n, 1, "t from a to b"))
    return _stats(runs + calls) + _graph(sends, *(_node(f"r{n}") for n in range(count)), receive)
