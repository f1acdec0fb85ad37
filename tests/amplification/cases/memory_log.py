"""Memory logs that no runtime writes (peakline/memory_log.proto, log_memory.proto)."""

from tests.amplification.wire import many, number, part, repeated

_RECORD = 1
_STEP, _ALLOCATED, _FREED, _OUTPUT, _RAW, _RAW_FREED = 3, 4, 5, 6, 7, 8
_ZERO = 1_700_000_000_000_000_000


def _record(n: int, kind: int, content: bytes) -> bytes:
    return part(_RECORD, number(1, _ZERO + n) + number(2, 7) + part(kind, content))


def _tensor(key: int, size: int = 256, name: str = "g", dims: bytes = b"") -> bytes:
    buffer = number(1, size) + number(2, size) + part(3, name) + number(4, key) + number(6, key)
    return number(1, 1) + part(2, dims) + part(4, buffer)


def _allocation(n: int, key: int, op: str = "op", name: str = "g", step: int = 1) -> bytes:
    content = number(1, step) + part(2, op) + part(3, _tensor(key, name=name))
    return _record(n, _ALLOCATED, content)


def empty_records(size: int) -> bytes:
    return _allocation(0, 1) + many(size, part(_RECORD))


def empty_allocations(size: int) -> bytes:
    return _allocation(0, 1) + many(size, part(_RECORD, part(_ALLOCATED)))


def allocations(size: int) -> bytes:
    return repeated(size, lambda n: _allocation(n, n))


def one_buffer(size: int) -> bytes:
    return repeated(size, lambda n: _allocation(n, 1))


def allocators(size: int) -> bytes:
    return repeated(size, lambda n: _allocation(n, n, name=f"g{n}"))


def untracked(size: int) -> bytes:
    """Ends of buffers without an id, each of another allocator."""
    return repeated(size, lambda n: part(_RECORD, part(_FREED, part(2, f"a{n}"))))


def ops(size: int) -> bytes:
    return repeated(size, lambda n: _allocation(n, n, op=f"a/b{n}/c{n}"))


def high_moments(size: int) -> bytes:
    """Many buffers that stay, and beside them a large one of another op again and again."""
    stays = repeated(size // 2, lambda n: _allocation(n, n + 2, op=f"o{n}"))
    large = stays.count(b"\n") * 64

    def moment(n: int) -> bytes:
        at, key = size + 2 * n, size + n
        content = number(1, 1) + part(2, f"m{n}") + part(3, _tensor(key, large))
        freed = _record(at + 1, _FREED, number(1, key) + part(2, "g"))
        return _record(at, _ALLOCATED, content) + freed

    return stays + repeated(size - len(stays), moment)


def allocators_and_steps(size: int) -> bytes:
    """Each of many allocators has something at the end of many steps."""
    marks = repeated(size // 2, lambda n: _record(2 * n, _STEP, number(1, n) + part(2, "s")))
    held = repeated(size // 2, lambda n: _allocation(0, n, name=f"g{n}", step=0))
    return held + marks


def deep_ops(size: int) -> bytes:
    return repeated(size, lambda n: _allocation(n, n, op="a/" * (size // 100) + f"b{n}"))


def steps(size: int) -> bytes:
    return repeated(
        size,
        lambda n: (
            _record(2 * n, _STEP, number(1, n) + part(2, f"->a//{n}"))
            + _allocation(2 * n + 1, n, step=n)
        ),
    )


def frees(size: int) -> bytes:
    return _allocation(0, 1) + repeated(
        size, lambda n: _record(n + 1, _FREED, number(1, n + 9) + part(2, "g"))
    )


def alternating(size: int) -> bytes:
    return repeated(
        size,
        lambda n: (
            _allocation(2 * n, n, op=f"o{n}")
            + _record(2 * n + 1, _FREED, number(1, n) + part(2, "g"))
        ),
    )


def raw_frees_deferred(size: int) -> bytes:
    return repeated(
        size,
        lambda n: _record(
            2 * n, _RAW, number(1, 1) + part(2, "t") + number(3, 512) + number(4, n)
            + number(5, n) + part(6, "g"),
        ) + _record(2 * n + 1, _RAW_FREED, number(3, n) + part(4, "g") + number(5, 1)),
    )  # fmt: skip


def outputs(size: int) -> bytes:
    content = number(1, 1) + part(2, "op") + part(4, _tensor(1))
    return _allocation(0, 1) + repeated(size, lambda n: _record(n, _OUTPUT, content))


def dims(size: int) -> bytes:
    content = part(2, "op") + part(3, _tensor(1, dims=many(size, part(2, number(1, 1 << 62)))))
    return _record(0, _ALLOCATED, content)


_LINE = "2024-01-01 00:00:00.{:06d}: I tensorflow/core/framework/log_memory.cc:35] __LOG_MEMORY__ "


def lines(size: int) -> bytes:
    return repeated(
        size,
        lambda n: (
            _LINE.format(n % 10**6)
            + f'MemoryLogTensorAllocation {{ step_id: 1 kernel_name: "o{n}" tensor {{ dtype: '
            f"DT_FLOAT shape {{ dim {{ size: 4 }} }} allocation_description {{ requested_bytes: 16 "
            f'allocated_bytes: 256 allocator_name: "g" allocation_id: {n} ptr: {n} }} }} }}\n'
        ).encode(),
    )


def empty_lines(size: int) -> bytes:
    first = (_LINE.format(0) + "MemoryLogStep { step_id: 1 }\n").encode()
    return first + many(size, b"__LOG_MEMORY__ MemoryLogStep { }\n")


def dims_of_a_line(size: int) -> bytes:
    head = _LINE.format(0) + 'MemoryLogTensorAllocation { kernel_name: "a" tensor { shape {'
    return head.encode() + many(size, b" dim{}") + b"}}}\n"


def json(size: int) -> bytes:
    return b'{"record":[{"timeNs":"1","step":{"stepId":"1"}}' + many(size, b",{}") + b"]}"


def text(size: int) -> bytes:
    return b"record { time_ns: 1 step { step_id: 1 } }\n" + many(size, b"record{}\n")
