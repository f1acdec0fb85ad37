"""An XSpace that is worse than any profiler makes it (tsl/profiler/protobuf/xplane.proto)."""

from tests.amplification.cases.hlo_work import all_live
from tests.amplification.wire import many, number, part, repeated

_SPACE_PLANE = 1
_LINES, _EVENT_TYPES, _STAT_TYPES, _PLANE_STATS = 3, 4, 5, 6
_NAME = 2
_BIG = 1 << 62


def _type(field: int, key: int, name: str, more: bytes = b"") -> bytes:
    """A kind of event or stat of a plane."""
    return part(field, number(1, key) + part(2, number(1, key) + part(_NAME, name) + more))


def _plane(name: str, *content: bytes) -> bytes:
    return part(_SPACE_PLANE, part(_NAME, name) + b"".join(content))


def _line(key: int, *content: bytes, name: str = "") -> bytes:
    return part(_LINES, number(1, key) + (part(2, name) if name else b"") + b"".join(content))


def _event(kind: int, offset: int = 0, duration: int = 0, stats: bytes = b"") -> bytes:
    return part(4, number(1, kind) + number(2, offset) + number(3, duration) + stats)


def _int(kind: int, value: int) -> bytes:
    return part(4, number(1, kind) + number(4, value))


def _text(kind: int, value: str) -> bytes:
    return part(4, number(1, kind) + part(5, value))


def _ref(kind: int, value: int) -> bytes:
    return part(4, number(1, kind) + number(7, value))


def _host(events: bytes, *types: bytes, name: str = "/host:CPU") -> bytes:
    return _plane(name, *types, _line(1, events, name="main"))


# Many of one thing.


def empty_planes(size: int) -> bytes:
    return _plane("/host:CPU") + many(size, part(_SPACE_PLANE))


def named_planes(size: int) -> bytes:
    return repeated(size, lambda n: _plane(f"p{n}"))


def gpus(size: int) -> bytes:
    """Each with a stream and a kernel."""
    kernel = _type(_EVENT_TYPES, 1, "k")
    return repeated(
        size, lambda n: _plane(f"/device:GPU:{n}", kernel, _line(7, _event(1, n, 5), name="Stream"))
    )


def tpus(size: int) -> bytes:
    """Each with a step and an op."""
    types = _type(_EVENT_TYPES, 1, "k")

    def one(n: int) -> bytes:
        lines = [_line(i, _event(1, n, 5), name=name) for i, name in enumerate(_TPU_LINES)]
        return _plane(f"/device:TPU:{n}", types, *lines)

    return repeated(size, one)


_TPU_LINES = ("Steps", "XLA Modules", "XLA Ops")


def hosts(size: int) -> bytes:
    """Planes of threads, each with an event."""
    kind = _type(_EVENT_TYPES, 1, "k")
    return repeated(size, lambda n: _plane("/host:CPU", kind, _line(n, _event(1, n, 5))))


def empty_lines(size: int) -> bytes:
    return _plane("/host:CPU", many(size, part(_LINES)))


def threads(size: int) -> bytes:
    """Each with a name and one event."""
    kind = _type(_EVENT_TYPES, 1, "k")
    lines = repeated(size, lambda n: _line(n, _event(1, n, 5), name=f"t{n}"))
    return _plane("/host:CPU", kind, lines)


def streams(size: int) -> bytes:
    """Each with a name and one event."""
    kind = _type(_EVENT_TYPES, 1, "k")
    lines = repeated(size, lambda n: _line(n, _event(1, n, 5), name=f"Stream #{n}"))
    return _plane("/device:GPU:0", kind, lines)


def empty_events(size: int) -> bytes:
    return _host(many(size, part(4)))


def device_empty_events(size: int) -> bytes:
    return _host(many(size, part(4)), name="/device:GPU:0")


def instants(size: int) -> bytes:
    return _host(many(size, _event(1)), _type(_EVENT_TYPES, 1, "k"))


def empty_stats(size: int) -> bytes:
    """All of one event."""
    return _host(_event(1, 0, 5, many(size, part(4))), _type(_EVENT_TYPES, 1, "k"))


def stats_of_one_name(size: int) -> bytes:
    return _host(
        _event(1, 0, 5, many(size, _int(3, 1))),
        _type(_EVENT_TYPES, 1, "k"),
        _type(_STAT_TYPES, 3, "a"),
    )


def stats_of_many_names(size: int) -> bytes:
    types = repeated(size // 2, lambda n: _type(_STAT_TYPES, n + 1, f"s{n}"))
    stats = repeated(size // 2, lambda n: _int(n + 1, n))
    return _host(_event(1, 0, 5, stats), _type(_EVENT_TYPES, 1, "k"), types)


def distinct_texts(size: int) -> bytes:
    """Every event has a stat of its own text."""
    return _host(
        repeated(size, lambda n: _event(1, n, 1, _text(1, f"v{n}"))),
        _type(_EVENT_TYPES, 1, "k"),
        _type(_STAT_TYPES, 1, "long_name"),
    )


def one_long_text(size: int) -> bytes:
    """Every event refers to the same long text."""
    return _host(
        repeated(size // 2, lambda n: _event(1, n, 1, _ref(1, 9))),
        _type(_EVENT_TYPES, 1, "k"),
        _type(_STAT_TYPES, 1, "tf_op"),
        _type(_STAT_TYPES, 9, "a/" * (size // 4)),
    )


def plane_stats(size: int) -> bytes:
    return _plane("/host:CPU", many(size, part(_PLANE_STATS)))


def empty_event_types(size: int) -> bytes:
    return _plane("/host:CPU", many(size, part(_EVENT_TYPES)))


def event_types(size: int) -> bytes:
    return _plane("/host:CPU", repeated(size, lambda n: _type(_EVENT_TYPES, n, f"k{n}")))


def huge_type_ids(size: int) -> bytes:
    return _plane(
        "/host:CPU",
        repeated(size // 2, lambda n: _type(_EVENT_TYPES, _BIG + n * 977, f"k{n}")),
        _line(1, repeated(size // 2, lambda n: _event(_BIG + n * 977, n, 1))),
    )


def planes_of_large_ids(size: int) -> bytes:
    """Tables by id would be a million times what is in them."""

    def one(n: int) -> bytes:
        types = _type(_EVENT_TYPES, (1 << 22) - 1, "k") + _type(_STAT_TYPES, (1 << 20) - 1, "_r")
        stats = _int((1 << 20) - 1, 1)
        return _plane(f"p{n}", types, _line(1, _event((1 << 22) - 1, n, 1, stats)))

    return repeated(size, one)


def event_type_children(size: int) -> bytes:
    child = many(size, number(6, 1))
    return _host(_event(1, 0, 5), _type(_EVENT_TYPES, 1, "k", child))


def event_type_stats(size: int) -> bytes:
    stats = many(size, part(5, number(1, 1) + number(4, 1)))
    return _host(
        _event(1, 0, 5), _type(_EVENT_TYPES, 1, "k", stats), _type(_STAT_TYPES, 1, "flops")
    )


def stat_types(size: int) -> bytes:
    return _plane("/host:CPU", repeated(size, lambda n: _type(_STAT_TYPES, n, f"s{n}")))


def errors(size: int) -> bytes:
    return _host(_event(1, 0, 5)) + many(size, part(2)) + part(2, "a")


def hostnames(size: int) -> bytes:
    return _host(_event(1, 0, 5)) + repeated(size, lambda n: part(4, f"h{n}"))


def unknown_fields(size: int) -> bytes:
    return _host(_event(1, 0, 5, many(size, number(15, 1))))


def nested_unknown(size: int) -> bytes:
    """A message of the protobuf kind in itself as deep as it goes."""
    content = b""
    for _ in range(size // 12):
        content = part(3, content) if len(content) < 1 << 14 else content
    return _plane("/host:CPU", many(size - len(content), part(_LINES, content[: 1 << 14])))


# What is deep, long or hostile.


def deep_scopes(size: int) -> bytes:
    """Ops in scopes as deep as fits."""
    name = "a/" * (size // 4) + "b:MatMul"
    return _host(
        repeated(size // 4, lambda n: _event(1 + n % 2, n * 9, 8, _ref(1, 9))),
        _type(_EVENT_TYPES, 1, name),
        _type(_EVENT_TYPES, 2, "k"),
        _type(_STAT_TYPES, 1, "tf_op"),
        _type(_STAT_TYPES, 9, name),
    )


def deep_device_scopes(size: int) -> bytes:
    """As `deep_scopes`, of kernels of a GPU, each scope as deep as the square root of all."""
    depth = int((size // 4) ** 0.5)
    ops = repeated(
        size,
        lambda n: (
            _type(_STAT_TYPES, 100 + n, "a/" * depth + f"b{n}:MatMul")
            + _line(n, _event(1, n * 9, 8, _ref(1, 100 + n)), name=f"Stream #{n}")
        ),
    )
    return _plane("/device:GPU:0", _type(_EVENT_TYPES, 1, "k"), _type(_STAT_TYPES, 1, "tf_op"), ops)


def growing_scopes(size: int) -> bytes:
    """Every name is one scope deeper than the one before."""
    return _host(
        repeated(size // 8, lambda n: _event(n + 1, n * 9, 8)),
        repeated(size, lambda n: _type(_EVENT_TYPES, n + 1, "a/" * n + "b:Add")),
    )


def long_name(size: int) -> bytes:
    return _host(_event(1, 0, 5), _type(_EVENT_TYPES, 1, "x" * size))


def wide_name(size: int) -> bytes:
    """Letters of four bytes and control characters."""
    return _host(_event(1, 0, 5), _type(_EVENT_TYPES, 1, "\U0001f600\x1b\x00\n" * (size // 7)))


def hostile_names(size: int) -> bytes:
    """What makes expressions with nested repetition try everything."""
    return _host(
        repeated(size // 2, lambda n: _event(1 + n % 4, n * 9, 8)),
        _type(_EVENT_TYPES, 1, "(" * (size // 8)),
        _type(_EVENT_TYPES, 2, "a" * (size // 8) + "!"),
        _type(_EVENT_TYPES, 3, "1." * (size // 16) + "_"),
        _type(_EVENT_TYPES, 4, "<" * (size // 8)),
    )


def jax_names(size: int) -> bytes:
    """Names as JAX writes them, of brackets that never end."""
    name = "jit(" * (size // 16) + "/transpose(jvp(" * (size // 64)
    return _host(
        repeated(size // 2, lambda n: _event(1 + n % 2, n * 9, 8, _ref(1, 9))),
        _type(_EVENT_TYPES, 1, f"PjitFunction({name})"),
        _type(_EVENT_TYPES, 2, name),
        _type(_STAT_TYPES, 1, "tf_op"),
        _type(_STAT_TYPES, 9, name),
    )


def nested_events(size: int) -> bytes:
    """Each inside the one before."""
    count = size // 12
    return _host(
        repeated(size, lambda n: _event(1, n, max(2 * count - 2 * n, 0))),
        _type(_EVENT_TYPES, 1, "k"),
    )


def nested_python(size: int) -> bytes:
    """Calls of Python, each inside the one before, of a line of its own."""
    count = size // 40
    return _host(
        repeated(size // 3, lambda n: _event(1 + n, n, max(2 * count - 2 * n, 0))),
        repeated(2 * size // 3, lambda n: _type(_EVENT_TYPES, 1 + n, f"$m.py:{n} f{n}")),
        name="/host:python-tracer",
    )


def nested_kernels(size: int) -> bytes:
    count = size // 12
    return _host(
        repeated(size, lambda n: _event(1, n, max(2 * count - 2 * n, 0))),
        _type(_EVENT_TYPES, 1, "k"),
        name="/device:GPU:0",
    )


def staircase(size: int) -> bytes:
    """Each begins inside the one before and ends after it."""
    return _host(
        repeated(size, lambda n: _event(1, n, size)), _type(_EVENT_TYPES, 1, "k"),
        name="/device:GPU:0",
    )  # fmt: skip


def same_time(size: int) -> bytes:
    return _host(many(size, _event(1, 5, 5)), _type(_EVENT_TYPES, 1, "k"))


def far_times(size: int) -> bytes:
    return _host(
        repeated(size, lambda n: _event(1, (-1) ** n * (_BIG + n), _BIG)),
        _type(_EVENT_TYPES, 1, "k"),
    )


# Steps.

_STEP_STATS = (_type(_STAT_TYPES, 1, "step_num"), _type(_STAT_TYPES, 2, "_r"))


def steps(size: int) -> bytes:
    return _host(
        repeated(size, lambda n: _event(1, n * 10, 8, _int(1, n) + _int(2, 1))),
        _type(_EVENT_TYPES, 1, "train"),
        *_STEP_STATS,
    )


def nested_steps(size: int) -> bytes:
    count = size // 24
    return _host(
        repeated(size, lambda n: _event(1, n, max(2 * count - 2 * n, 0), _int(1, n) + _int(2, 1))),
        _type(_EVENT_TYPES, 1, "train"),
        *_STEP_STATS,
    )


def overlapping_steps(size: int) -> bytes:
    """Every step lasts from its start to the end of all, on a thread of its own."""
    lines = repeated(
        size // 2, lambda n: _line(n, _event(1, n, size, _int(1, n) + _int(2, 1)), name=f"t{n}")
    )
    work = _line(_BIG, repeated(size // 2, lambda n: _event(2, n, 1)))
    types = _type(_EVENT_TYPES, 1, "train") + _type(_EVENT_TYPES, 2, "MatMul:MatMul")
    return _plane("/host:CPU", types, *_STEP_STATS, lines, work)


def steps_and_work(size: int) -> bytes:
    """Steps of the host, with kernels of a GPU in each by its group."""
    marks = repeated(size // 3, lambda n: _event(1, n * 10, 10, _int(1, n) + _int(2, 1)))
    kernels = repeated(2 * size // 3, lambda n: _event(1, n * 5, 5, _int(1, n // 2)))
    return _host(marks, _type(_EVENT_TYPES, 1, "train"), *_STEP_STATS) + _host(
        kernels,
        _type(_EVENT_TYPES, 1, "k"),
        _type(_STAT_TYPES, 1, "group_id"),
        name="/device:GPU:0",
    )


def steps_of_tpus(size: int) -> bytes:
    def core(n: int) -> bytes:
        lines = [
            _line(i, repeated(size // 100, lambda k: _event(1, k * 10, 10)), name=name)
            for i, name in enumerate(_TPU_LINES)
        ]
        return _plane(f"/device:TPU:{n}", _type(_EVENT_TYPES, 1, "k"), *lines)

    return repeated(size, core)


# Contexts: who hands work to whom.

_CONTEXT_STATS = b"".join(
    _type(_STAT_TYPES, key, name) for key, name in enumerate(("_pt", "_p", "_ct", "_c"), 1)
)


def one_context(size: int) -> bytes:
    """Everybody produces it, and everybody consumes it."""
    produce = many(size // 2, _event(1, 1, 2, _int(1, 1) + _int(2, 7)))
    consume = many(size // 2, _event(2, 2, 2, _int(3, 1) + _int(4, 7)))
    types = _type(_EVENT_TYPES, 1, "TraceContext") + _type(_EVENT_TYPES, 2, "w")
    return _plane("/host:CPU", types, _CONTEXT_STATS, _line(1, produce), _line(2, consume))


def crowds(size: int) -> bytes:
    """Many contexts, each of sixty who produce and sixty who consume."""

    def ends(first: int) -> bytes:
        return repeated(
            size // 2,
            lambda n: _event(1, n, 2, _int(first, 1) + _int(first + 1, n // 60)),
        )  # fmt: skip

    types = _type(_EVENT_TYPES, 1, "TraceContext")
    return _plane("/host:CPU", types, _CONTEXT_STATS, _line(1, ends(1)), _line(2, ends(3)))


def chained_contexts(size: int) -> bytes:
    """Each consumes what the one before produced, with a step at the begin."""
    stats = _CONTEXT_STATS + _type(_STAT_TYPES, 5, "_r")
    return _host(
        _event(1, 0, 1, _int(1, 1) + _int(2, 0) + _int(5, 1))
        + repeated(
            size,
            lambda n: _event(
                2, 2 * n + 2, 1, _int(3, 1) + _int(4, n) + _int(1, 1) + _int(2, n + 1)
            ),
        ),
        _type(_EVENT_TYPES, 1, "TraceContext"),
        _type(_EVENT_TYPES, 2, "w"),
        stats,
    )


def repeated_ids(size: int) -> bytes:
    """One id that is produced and consumed in every step."""
    stats = _CONTEXT_STATS + _type(_STAT_TYPES, 5, "_r") + _type(_STAT_TYPES, 6, "step_num")
    marks = repeated(
        size // 2, lambda n: _event(1, 10 * n, 8, _int(1, 1) + _int(2, 7) + _int(5, 1) + _int(6, n))
    )
    taken = repeated(size // 2, lambda n: _event(2, 10 * n + 1, 2, _int(3, 1) + _int(4, 7)))
    types = _type(_EVENT_TYPES, 1, "train") + _type(_EVENT_TYPES, 2, "w")
    return _plane("/host:CPU", types, stats, _line(1, marks), _line(2, taken))


def thread_pools(size: int) -> bytes:
    """Regions of thread pools that begin and never end."""
    names = ("ThreadpoolListener::Region", "ThreadpoolListener::StartRegion")
    types = b"".join(_type(_EVENT_TYPES, 1 + n, name) for n, name in enumerate(names))
    return _host(
        repeated(size, lambda n: _event(1 + n % 2, n, 1, _int(1, 7) + _int(2, n))),
        types,
        _CONTEXT_STATS,
    )


def correlations(size: int) -> bytes:
    """Kernels that all have the id of one launch, of which there are many."""
    launch = many(size // 2, _event(1, 1, 2, _int(1, 7)))
    kernel = repeated(size // 2, lambda n: _event(1, n * 3, 2, _int(1, 7)))
    types = _type(_EVENT_TYPES, 1, "cudaLaunchKernel"), _type(_STAT_TYPES, 1, "correlation_id")
    return _host(launch, *types) + _host(kernel, *types, name="/device:GPU:0")


# Memory.

_MEMORY_STATS = (
    "allocator_name", "bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use",
    "requested_bytes", "allocation_bytes", "addr", "tf_op", "region_type", "shape",
)  # fmt: skip
_MEMORY_TYPES = b"".join(
    [
        _type(_EVENT_TYPES, 1, "MemoryAllocation"),
        _type(_EVENT_TYPES, 2, "MemoryDeallocation"),
        *(_type(_STAT_TYPES, key, name) for key, name in enumerate(_MEMORY_STATS, 1)),
    ]
)


def allocations(size: int) -> bytes:
    """Nothing is ever freed."""
    return _host(
        repeated(
            size, lambda n: _event(1, n, 0, _text(1, "g") + _int(7, 1 << 40) + _int(8, n * 256))
        ),
        _MEMORY_TYPES,
    )


def empty_allocations(size: int) -> bytes:
    return _host(many(size, _event(1, 1, 0)), _MEMORY_TYPES)


def allocators(size: int) -> bytes:
    """Each allocation is of an allocator of its own."""
    return _host(
        repeated(
            size, lambda n: _event(1, n, 0, _text(1, f"g{n}") + _int(7, 256) + _int(8, n * 256))
        ),
        _MEMORY_TYPES,
    )


def one_address(size: int) -> bytes:
    """Allocated again and again, and freed never."""
    return _host(
        repeated(size, lambda n: _event(1, n, 0, _text(1, "g") + _int(7, n) + _int(8, 256))),
        _MEMORY_TYPES,
    )


def allocated_and_freed(size: int) -> bytes:
    """Each op, shape and region is another."""

    def one(n: int) -> bytes:
        about = _text(1, "g") + _int(7, 256 + n % 7) + _int(8, 256 * n)
        more = _text(9, f"a/b{n}:Op{n}") + _text(10, f"r{n}") + _text(11, f"[{n},{n}]")
        return _event(1, 2 * n, 0, about + more) + _event(2, 2 * n + 1, 0, about)

    return _host(repeated(size, one), _MEMORY_TYPES)


def nested_buffers(size: int) -> bytes:
    """First all are allocated, then all are freed, the last first."""
    half = repeated(
        size // 2, lambda n: _event(1, n, 0, _text(1, "g") + _int(7, 512) + _int(8, n * 512))
    )
    count = half.count(b"\x01g")
    rest = b"".join(
        _event(2, 2 * count - n, 0, _text(1, "g") + _int(7, 512) + _int(8, n * 512))
        for n in reversed(range(count))
    )
    return _host(half + rest, _MEMORY_TYPES)


def memory_and_steps(size: int) -> bytes:
    """In every step, something is allocated by an op of a deep scope of its own."""
    types = _MEMORY_TYPES + _type(_EVENT_TYPES, 3, "train")
    types += _type(_STAT_TYPES, 21, "step_num") + _type(_STAT_TYPES, 22, "_r")

    def one(n: int) -> bytes:
        mark = _event(3, 10 * n, 9, _int(21, n) + _int(22, 1))
        about = _text(1, "g") + _int(7, 256) + _int(8, n * 256) + _text(9, "a/" * 20 + f"b{n}:Add")
        return mark + _event(1, 10 * n + 1, 0, about)

    return _host(repeated(size, one), types)


def deep_memory_scopes(size: int) -> bytes:
    """Buffers of ops in scopes that are as deep as the file allows."""
    depth = size // 40

    def one(n: int) -> bytes:
        about = _text(1, "g") + _int(7, 256) + _int(8, n * 256)
        return _event(1, n + 1, 0, about + _text(9, "a/" * depth + f"b{n}:Add"))

    return _host(repeated(size, one), _MEMORY_TYPES)


def one_memory_scope(size: int) -> bytes:
    """All buffers are of one op, with a long name, shape and region."""

    def one(n: int) -> bytes:
        about = _text(1, "g") + _int(7, 256) + _int(8, n * 256)
        return _event(1, n + 1, 0, about + _ref(9, 30) + _ref(10, 31) + _ref(11, 32))

    return _host(
        repeated(size // 4, one),
        _MEMORY_TYPES,
        *(_type(_STAT_TYPES, key, "a/" * (size // 8) + f":{key}") for key in (30, 31, 32)),
    )


# Programs in the profile.


def programs(size: int) -> bytes:
    """Small programs, each of an entry of the metadata."""
    module = part(1, part(1, "m") + part(2, "e") + part(3, part(1, "e") + part(2, part(1, "i"))))
    types = repeated(
        size, lambda n: _type(_EVENT_TYPES, n, f"m({n})", part(5, number(1, 1) + part(6, module)))
    )
    return _plane("/host:metadata", _type(_STAT_TYPES, 1, "hlo_proto"), types)


def no_programs(size: int) -> bytes:
    """Entries of the metadata that should hold a program, and hold nothing."""
    types = repeated(size, lambda n: _type(_EVENT_TYPES, n, "m", part(5, number(1, 1) + part(6))))
    return _plane("/host:metadata", _type(_STAT_TYPES, 1, "hlo_proto"), types)


def program_on_many_devices(size: int) -> bytes:
    """One program, of which very much is live at a time, that ran on every device."""
    run = _type(_EVENT_TYPES, 1, "m(5)")
    ran = _line(1, _event(1, 1, 5), name="XLA Modules")
    devices = repeated(size // 2, lambda n: _plane(f"/device:TPU:{n}", run, ran))
    module = all_live(size // 2)
    program = _type(_EVENT_TYPES, 5, "m(5)", part(5, number(1, 1) + part(6, module)))
    return devices + _plane("/host:metadata", _type(_STAT_TYPES, 1, "hlo_proto"), program)


# Inputs, inference, counters, transfers.


def requests(size: int) -> bytes:
    names = (
        "InferenceServer::ProcessRequest", "BatchingSessionRun", "ProcessBatch", "ScheduleWithSplit"
    )  # fmt: skip
    types = b"".join(_type(_EVENT_TYPES, 1 + n, name) for n, name in enumerate(names))
    stats = _CONTEXT_STATS + _type(_STAT_TYPES, 5, "request_id") + _type(_STAT_TYPES, 6, "_r")
    return _host(
        repeated(
            size,
            lambda n: _event(
                1 + n % 4, n, 1000, _int(1, 5) + _int(2, n) + _int(5, n // 4) + _int(6, 1)
            ),
        ),
        types,
        stats,
    )


def input_stages(size: int) -> bytes:
    """Iterators of tf.data, each with a parent."""
    types = _type(_EVENT_TYPES, 1, "Iterator::Prefetch") + _type(_STAT_TYPES, 1, "id")
    types += _type(_STAT_TYPES, 2, "parent_id") + _type(_EVENT_TYPES, 2, "Iterator::Root::Map")
    return _host(
        repeated(size, lambda n: _event(1 + n % 2, 3 * n, 2, _int(1, n + 1) + _int(2, n))), types
    )


def counters(size: int) -> bytes:
    types = repeated(size // 2, lambda n: _type(_EVENT_TYPES, n + 1, f"counter {n}"))
    values = repeated(size // 2, lambda n: _event(n % 5 + 1, n, 0, _int(1, n)))
    return _plane(
        "/device:GPU:0", types, _type(_STAT_TYPES, 1, "counter_value"),
        _line(1, values, name="_counters_"), _line(2, values, name="Counters"),
    )  # fmt: skip


def collectives(size: int) -> bytes:
    types = _type(_EVENT_TYPES, 1, "all-reduce.1") + _type(_EVENT_TYPES, 2, "all-reduce-done.1")
    events = repeated(size // 6, lambda n: _event(1 + n % 2, n * 2, 3))
    return b"".join(
        _plane(f"/device:TPU:{n}", types, _line(1, events, name="XLA Ops"),
               _line(2, events, name="XLA Modules"), _line(3, events, name="Steps"))
        for n in range(2)
    )  # fmt: skip


# Numbers of very many digits.


def core_number(size: int) -> bytes:
    """Cores of TPUs."""
    types = _type(_EVENT_TYPES, 1, "c") + _type(_STAT_TYPES, 1, "counter_value")
    names = "Steps", "XLA Modules", "XLA Ops"
    lines = b"".join(
        _line(key, _event(1, 5, 5, _int(1, 5)), name=name) for key, name in enumerate(names)
    )
    digits = "9" * 20, "9" * size
    return b"".join(_plane(f"/device:TPU:{number}", types, lines) for number in digits)


def program_number(size: int) -> bytes:
    """Programs of ops, one of them no number."""
    types = _type(_STAT_TYPES, 1, "program_id") + b"".join(
        _type(_EVENT_TYPES, key, f"c{key}", part(5, number(1, 1) + part(5, text)))
        for key, text in ((1, "9" * size), (2, "--5"), (3, "²"))
    )
    ops = _line(1, *(_event(key, 5 * key, 5) for key in (1, 2, 3)), name="XLA Ops")
    computation = part(3, part(1, "e") + part(2, part(1, "i")))
    module = part(1, part(1, "m") + part(2, "e") + computation)
    program = _type(_EVENT_TYPES, 5, "m(5)", part(5, number(1, 1) + part(6, module)))
    proto = _type(_STAT_TYPES, 1, "hlo_proto")
    return _plane("/device:TPU:0", types, ops) + _plane("/host:metadata", proto, program)


def chip_number(size: int) -> bytes:
    types = (
        _type(_EVENT_TYPES, 1, "c"),
        _type(_STAT_TYPES, 1, "counter_value"),
        _type(_STAT_TYPES, 2, "global_chip_id"),
    )
    chip = part(_PLANE_STATS, number(1, 2) + part(5, "9" * size))
    line = _line(1, _event(1, 0, 1, _int(1, 5)), name="x")
    named = _plane(f"/device:GPU:{'9' * size}", *types, line)
    return named + _plane("/device:TPU:0", *types, chip, line)


def shape_number(size: int) -> bytes:
    """Dimensions of tensors."""

    def allocated(n: int, shape: str) -> bytes:
        about = _text(1, "g") + _int(7, 1 << 30) + _int(8, n * 256)
        return _event(1, n, 0, about + _text(9, "a/b") + _text(10, "temp") + _text(11, shape))

    return _host(allocated(0, f"[{'9' * size}]") + allocated(1, f"[{'9' * 20}, 8]"), _MEMORY_TYPES)
