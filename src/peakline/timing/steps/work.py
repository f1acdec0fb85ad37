"""What the ops of a step, or of all that was recorded, cost together
(``GenerateRooflineModelProgramRecord`` of ``convert/op_stats_to_roofline_model.cc`` in
openxla/xprof).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from peakline.timing.ops.metrics import OpMetrics, added

_MODULUS = 2**64
_PROGRAM = "Program"
_OUTER = frozenset(("call", "conditional", "while", "megacore fusion"))


def _program() -> OpMetrics:
    return OpMetrics(_PROGRAM, occurrences=1)


@dataclass
class Work:
    """Sums of ops, with those that hold other ops left out: ``rest`` without, and ``transfers``
    of what brings data in or out (whose time ``transfers`` has too); ``total_ps`` is the whole
    time of the devices.
    """

    total_ps: int = 0
    rest: OpMetrics = field(default_factory=_program)
    transfers: OpMetrics = field(default_factory=_program)

    def add(self, other: Work) -> None:
        """Count that of another device, or another step."""
        self.total_ps = (self.total_ps + other.total_ps) % _MODULUS
        for own, more in ((self.rest, other.rest), (self.transfers, other.transfers)):
            _count(own, more)

    def program(self, *, with_transfers: bool) -> OpMetrics:
        """All as one op, which took the whole time, or that without the transfers'."""
        result = _program()
        _count(result, self.rest)
        if with_transfers:
            _count(result, self.transfers)
            result.total_ps = self.total_ps
        else:
            result.total_ps = (self.total_ps - self.transfers.total_ps) % _MODULUS
        return result


def is_transfer(category: str) -> bool:
    """Whether ops of a category bring data in or out."""
    return "infeed" in category or "outfeed" in category


def work_of(ops: Iterable[OpMetrics], total_ps: int) -> Work:
    """What these ops did in this time."""
    result = Work(total_ps)
    for op in ops:
        if op.facts.category in _OUTER:
            continue
        part = result.transfers if is_transfer(op.facts.category) else result.rest
        _count(part, op)
    return result


def _count(one: OpMetrics, other: OpMetrics) -> None:
    one.total_ps = (one.total_ps + other.total_ps) % _MODULUS
    one.flops += other.flops
    one.model_flops += other.model_flops
    one.bytes_accessed += other.bytes_accessed
    one.moved = added(one.moved, other.moved)
