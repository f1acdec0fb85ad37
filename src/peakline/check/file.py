"""A baseline in a file: what ``peakline check --json`` and ``peakline memory --json`` write.

A repository can keep such a document instead of the profile. That of ``check`` has everything that
is compared; that of ``memory`` tells no growth, so only peaks are compared with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from peakline.compare.state import AllocatorState, Kind, MemoryState, groups_of, rates_of
from peakline.errors import InputError
from peakline.memory.signatures import normal_shape

_START = re.compile(rb'\s*\{\s*"(profile|passed|checks|allocators|findings|warnings)"\s*:')
_LARGEST = 2**62
_NO_GROWTH = "the file tells no growth; one that peakline check --json wrote does"


def is_baseline(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is such a document, and no profile."""
    return _START.match(head) is not None


def write_baseline(state: MemoryState) -> list[dict[str, object]]:
    """``allocators`` of ``peakline check --json``: all that `read_baseline` needs."""
    return [
        one.as_json()
        | {
            "peak_unknown": one.peak_unknown,
            "growth_unknown": one.growth_unknown,
            "peak_buffers": [
                group.kind.as_json() | {"bytes": group.bytes, "count": group.count}
                for group in one.groups
            ],
            "leaks": [
                leak.kind.as_json() | {"bytes_per_step": round(leak.bytes_per_step)}
                for leak in one.leaks
            ],
        }
        for one in state.allocators
    ]


def read_baseline(content: bytes, name: str) -> MemoryState:
    """The figures in a document of ``peakline check --json`` or ``peakline memory --json``.

    Raises InputError, with the file's ``name``, where it is neither or its peak buffers do not
    add up.
    """
    try:
        document = json.loads(content)
        allocators = [_allocator(row) for row in _rows(_object(document), "allocators")]
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{name}: is no baseline that peakline check --json or memory --json wrote: {error}"
        ) from error
    names = [one.allocator for one in allocators]
    if len(set(names)) != len(names):
        raise InputError(f"{name}: names an allocator twice")
    return MemoryState(tuple(allocators), nothing="" if allocators else "it names no allocator")


def _allocator(row: Mapping[str, object]) -> AllocatorState:
    growth = _rate(row, "growth_per_step_bytes")
    steps = row.get("steps")
    reported = row.get("reported")
    state = AllocatorState(
        allocator=_text(row, "allocator"),
        peak_bytes=_size(row, "peak_bytes"),
        groups=groups_of(
            (_kind(buffer), _size(buffer, "bytes"), _size(buffer, "count"))
            for buffer in _rows(row, "peak_buffers")
        ),
        peak_unknown=_text(row, "peak_unknown", ""),
        reported=reported if isinstance(reported, bool) else None,
        steps=None if steps is None else _size(row, "steps"),
        growth_per_step=growth,
        growth_unknown="" if growth is not None else _text(row, "growth_unknown", _NO_GROWTH),
        leaks=rates_of(
            (_kind(leak), float(_size(leak, "bytes_per_step")), 0)
            for leak in _rows(row, "leaks", [])
        ),
        fragmentation=_rate(row, "fragmentation_at_peak"),
        allocated_per_step=_rate(row, "allocated_per_step_bytes"),
    )
    if sum(group.bytes for group in state.groups) != state.peak_bytes:
        raise ValueError(f"the peak buffers of {state.name} do not add up to its peak")
    return state


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("an object is expected")  # noqa: TRY004 (the document's value)
    return cast("Mapping[str, object]", value)


def _rows(
    row: Mapping[str, object], name: str, default: Sequence[object] | None = None
) -> list[Mapping[str, object]]:
    value = row.get(name, default)
    if not isinstance(value, list):
        raise ValueError(f"{name} is no list")  # noqa: TRY004 (the document's value)
    return [_object(one) for one in value]


def _text(row: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = row.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")  # noqa: TRY004 (the document's value)
    return value


def _size(row: Mapping[str, object], name: str) -> int:
    # (unattributed) may be negative.
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LARGEST:
        raise ValueError(f"{name} is no number of bytes")
    return value


def _rate(row: Mapping[str, object], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{name} is no positive number")
    return float(value)


def _kind(row: Mapping[str, object]) -> Kind:
    names = ("op", "region_type", "data_type", "shape")
    op, region, data_type, shape = (_text(row, name) for name in names)
    return Kind(op, region, data_type, normal_shape(shape))
