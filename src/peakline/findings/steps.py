"""What the findings about the time of steps have in common: their evidence and their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.arrays import AnyArray
from peakline.findings.kind import columns

if TYPE_CHECKING:
    from peakline.timing.step_facts import StepFacts

ROWS = 20
"""So many steps stand behind a finding."""

COLUMNS = columns("steps", "devices", "device", "step", "wall_ps", "share", "gain_ps", "gain_share")


def gain_of(facts: StepFacts, share: float, lost: int) -> dict[str, object]:
    """The ``share`` that the title has, and what would go of the time, ``lost`` in all lanes."""
    return {"share": share, "gain_ps": lost // facts.lanes, "gain_share": share}


def evidence_of(facts: StepFacts, share: float, lost: int, *parts: str) -> dict[str, object]:
    """The numbers of the steps, the ``parts`` of their time, and the gain."""
    evidence: dict[str, object] = {
        "steps": facts.count,
        "devices": len(facts.devices),
        "wall_ps": facts.wall_ps // facts.lanes,
    }
    evidence |= {name: facts.total(name) // facts.lanes for name in parts}
    return evidence | gain_of(facts, share, lost)


def rows_by_step(
    facts: StepFacts, lost: AnyArray, *parts: str, **shown: AnyArray
) -> tuple[dict[str, object], ...]:
    """The steps that lose most, per device, with ``parts`` of their time and what is ``shown``."""
    values = {name: facts.part(name) for name in parts} | shown
    order = (-lost).argsort(kind="stable")[:ROWS].tolist()
    return tuple(
        {
            "step": facts.label(row),
            **({"device": facts.devices[int(facts.device[row])]} if facts.devices else {}),
            "wall_ps": int(facts.part("wall_ps")[row]),
            **{name: int(column[row]) for name, column in values.items()},
        }
        for row in order
        if int(lost[row])
    )
