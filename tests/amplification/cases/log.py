"""Text that looks like logs and out-of-memory reports."""

# A line of a log is a line here.
# ruff: noqa: E501

from tests.amplification.wire import many, repeated

_BFC = (
    "2024-05-01 10:00:00.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:497] "
    "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB (rounded to 1610612736)"
    "requested by op a\n"
)
_IN = "2024-05-01 10:00:00.000000: I tensorflow/core/common_runtime/bfc_allocator.cc:1100] "


def newlines(size: int) -> bytes:
    return b"epoch 1\n" + b"\n" * size


def one_line(size: int) -> bytes:
    return b"a " * (size // 2)


def spaces(size: int) -> bytes:
    return b"x" + b" " * size + b"y\n"


def braces(size: int) -> bytes:
    return b"__LOG_MEMORY__ MemoryLogStep " + b"{" * size + b"\n"


def reports(size: int) -> bytes:
    return many(size, _BFC.encode())


def chunks(size: int) -> bytes:
    return _BFC.encode() + repeated(
        size, lambda n: f"{_IN}InUse at {n * 256:x} of size 256 next {n + 1}\n".encode()
    )


def bins(size: int) -> bytes:
    return _BFC.encode() + repeated(
        size,
        lambda n: (
            f"{_IN}Bin ({n}):  Total Chunks: 1, Chunks in use: 1. 1B allocated for chunks."
            " 1B in use in bin. 1B client-requested in use in bin.\n".encode()
        ),
    )


def _header(n: int) -> bytes:
    return f"Allocator (a{n}) ran out of memory trying to allocate 1B\n".encode()


def open_dumps(size: int) -> bytes:
    return repeated(size, _header)


def open_dumps_and_chunks(size: int) -> bytes:
    return repeated(size // 2, _header) + many(size // 2, b"Free at 0 of size 1\n")


def sums(size: int) -> bytes:
    chunks = many(size // 2, b"Free at 0 of size 1\n")
    return _header(1) + chunks + many(size // 2, b"Sum Total of in-use chunks: 7B\n")


def short_bins(size: int) -> bytes:
    return _header(1) + repeated(size, lambda n: f"Bin ({n + 1}):Total Chunks: 1\n".encode())


def torch_errors(size: int) -> bytes:
    line = (
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
        b"total capacity of 23.69 GiB of which 1.08 GiB is free.\n"
    )
    return many(size, line)


def short_errors(size: int) -> bytes:
    return many(size, b"CUDA out of memory.\n")


def resource_exhausted(size: int) -> bytes:
    return many(size, b"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.\n")


def resource_exhausted_line(size: int) -> bytes:
    return many(size, b"RESOURCE_EXHAUSTED: Out of memory while trying to allocate ")


def digits(size: int) -> bytes:
    return b"CUDA out of memory. Tried to allocate " + b"1" * size + b" GiB\n"


def buffer_assignment(size: int) -> bytes:
    head = b"Out of memory while trying to allocate 9 bytes.\nBufferAssignment OOM Debugging.\n"
    return (
        head
        + b"Peak buffers:\n"
        + repeated(
            size,
            lambda n: (
                f'\tBuffer {n}:\n\t\tSize: 1.0KiB\n\t\tOperator: op_name="a/{n}"\n\t\tXLA Label: dot\n'
                "\t\tShape: f32[8]\n\t\t==========================\n\n"
            ).encode(),
        )
    )


def tracebacks(size: int) -> bytes:
    frame = b'  File "a.py", line 1, in f\n    f()\n'
    return b"Traceback (most recent call last):\n" + many(size, frame) + b"MemoryError\n"


def many_tracebacks(size: int) -> bytes:
    one = b'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
    return many(size, one)


def docker(size: int) -> bytes:
    return repeated(
        size, lambda _: b'{"log":"CUDA out of memory. Tried to allocate 2.00 GiB\\n"}\n'
    )


def zeros(size: int) -> bytes:
    return b"x\n" + b"\0" * size
