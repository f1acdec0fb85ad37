"""Programs without the message around them, and snapshots of programs."""

from tests.amplification.cases import hlo_proto
from tests.amplification.wire import many, part


def nested_calls(size: int) -> bytes:
    whole = hlo_proto.nested_calls(size)
    return whole[len(whole) - _inside(whole) :]


def _inside(whole: bytes) -> int:
    at = 1
    while whole[at] & 0x80:
        at += 1
    return len(whole) - at - 1


def arguments(size: int) -> bytes:
    """A snapshot with very many arguments."""
    return part(1, hlo_proto.instructions(100)) + many(size, part(2))
