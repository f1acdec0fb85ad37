"""Programs whose costs, values and users take much work for few bytes (xla/service/hlo.proto)."""

from tests.amplification.cases.hlo_proto import (
    _F32,
    _FIRST,
    _instruction,
    _main,
)
from tests.amplification.wire import number, part, repeated, varint


def _array(*dimensions: int) -> bytes:
    return part(3, number(2, _F32) + part(3, b"".join(map(varint, dimensions))))


def convolutions(size: int) -> bytes:
    """Each of another shape, with a kernel as wide as any."""
    return _main(
        _FIRST,
        _instruction(2, "parameter", shape=_array(1 << 20)),
        repeated(
            size,
            lambda n: _instruction(
                n + 3, "convolution", part(36, b"\2\2"), more=_windows(1), shape=_array(n + 1)
            ),
        ),
    )


def convolution_windows(size: int) -> bytes:
    """One with very many windows."""
    more = _windows(size // 6)
    return _main(
        _FIRST,
        _instruction(2, "parameter", shape=_array(1 << 20)),
        _instruction(3, "convolution", part(36, b"\2\2"), more=more, shape=_array(1)),
    )


def _windows(count: int) -> bytes:
    numbers = b"".join(part(field, b"\0" * count) for field in (6, 11, 12))
    return part(16, numbers) + part(15, part(1) * count)


def different_windows(size: int) -> bytes:
    """One with very many windows, each another."""
    windows = repeated(size // 2, lambda n: part(1, number(2, n + 1)))
    zeros = b"\0" * (size // 6)
    numbers = b"".join(part(field, zeros) for field in (6, 11, 12))
    more = part(16, numbers) + part(15, windows)
    return _main(
        _FIRST,
        _instruction(2, "parameter", shape=_array(1 << 20)),
        _instruction(3, "convolution", part(36, b"\2\2"), more=more, shape=_array(1)),
    )


def deep_product(size: int) -> bytes:
    """A product of a library whose configuration is a list in a list, and so on."""
    return _called("__cublas$gemm", b"[" * size)


def deep_convolution(size: int) -> bytes:
    """The same of a convolution."""
    return _called("__cudnn$convForward", b'{"cudnn_conv_backend_config":' + b"[" * size)


def deep_attention(size: int) -> bytes:
    """The same of attention."""
    return _called("__cudnn$fmhaSoftmax", b"[" * size)


def _called(target: str, config: bytes) -> bytes:
    more = part(28, target) + part(43, config)
    return _main(_FIRST, _instruction(2, "custom-call", number(36, 1), more))
