"""StepStats: as those of `run_metadata`."""

from tests.amplification.cases import run_metadata
from tests.amplification.wire import part


def runs(size: int) -> bytes:
    return _alone(run_metadata.runs(size))


def devices(size: int) -> bytes:
    return _alone(run_metadata.devices(size))


def deep_scopes(size: int) -> bytes:
    return _alone(run_metadata.deep_scopes(size))


def _alone(whole: bytes) -> bytes:
    """What stands in the first field."""
    at = 1
    while whole[at] & 0x80:
        at += 1
    inside = whole[at + 1 :]
    assert whole == part(1, inside)
    return inside
