"""What the findings of growth have in common: their evidence, their rows, and how they name it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from peakline.findings.kind import ORIGIN, SIGNATURE, Column, about_signature, columns
from peakline.text import allocator_text

if TYPE_CHECKING:
    from peakline.memory.growth.series import AllocatorGrowth, GroupGrowth

FORECAST_STEPS = 100_000
"""A capacity that is further away than this is not spoken of."""

COLUMNS: dict[str, Column] = columns(
    *SIGNATURE, *ORIGIN, "scope", "buffer_bytes", "forms", "pattern", "since_step",
    "since_step_name", "bytes_per_step", "kept_bytes", "held_bytes", "rises", "confidence",
    "steps", "steps_found_by", "steps_detail", "peak_bytes",
)  # fmt: skip


def named(growth: AllocatorGrowth) -> str:
    """The allocator, as titles begin."""
    return allocator_text(growth.allocator)


def titles(result: Sequence[GroupGrowth]) -> str:
    """The first by name, and how many more there are."""
    others = f" and {len(result) - 1} more" if len(result) > 1 else ""
    return f"{result[0].signature.title.rstrip()}{others}"


def total(result: Iterable[GroupGrowth]) -> int:
    """The bytes that all of them gained."""
    return sum(group.pattern.bytes for group in result)


def room_text(growth: AllocatorGrowth) -> str:
    """When the capacity is reached, in two digits: a rate says no more. Empty where it is far."""
    left = growth.steps_left
    if left is None or left > FORECAST_STEPS:
        return ""
    if left == 0:
        return "the capacity is reached now"
    about = round(left, min(2 - len(str(left)), 0))
    unit = growth.marks.unit
    return f"the capacity is reached in about {about:,} more {unit}{'' if left == 1 else 's'}"


def evidence_of(growth: AllocatorGrowth, group: GroupGrowth) -> dict[str, object]:
    """What all of them say of their largest signature."""
    return {
        **about_signature(group.signature),
        "buffer_bytes": group.signature.bytes,
        "since_step": step_of(growth, group.pattern.since),
        "since_step_name": growth.marks.label(group.pattern.since),
        "steps": growth.steps,
        "steps_found_by": growth.marks.found_by,
        "steps_detail": growth.marks.detail,
    }


def rows_of(
    growth: AllocatorGrowth, groups: Iterable[GroupGrowth]
) -> tuple[dict[str, object], ...]:
    """A row for each signature."""
    return tuple(
        group.signature.as_row()
        | {
            "buffer_bytes": group.signature.bytes,
            "forms": group.forms,
            "pattern": group.pattern.kind,
            "since_step": step_of(growth, group.pattern.since),
            "bytes_per_step": round(group.pattern.bytes_per_step),
            "kept_bytes": group.pattern.bytes,
            "held_bytes": group.held_bytes,
            "rises": group.pattern.rises,
            "confidence": round(group.pattern.confidence, 3),
        }
        for group in groups
    )


def step_of(growth: AllocatorGrowth, place: int) -> int:
    """The id of a step; its place among the repetitions where the profile has no steps."""
    number = growth.marks.ids[place]
    return growth.marks.number(place) if number is None else number
