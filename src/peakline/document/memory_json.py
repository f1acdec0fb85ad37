"""The analyses behind the findings as JSON: growth, fragmentation, churn, savings, high moments.

Every function gives plain values, with sizes in bytes and times in picoseconds. They are what
``peakline memory --json`` has under an allocator, and the `memory_findings` tool as rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.memory.churn import AllocatorChurn, SignatureChurn
    from peakline.memory.details import MemoryDetails
    from peakline.memory.fragmentation.holes import Fragmentation
    from peakline.memory.growth.series import AllocatorGrowth, GroupGrowth
    from peakline.memory.peak.explained import AllocatorPeak
    from peakline.memory.peak.moments import HighMoment

_GROUPS = 32
"""So many groups that do not stay the same are listed, those that brought most bytes."""
_SIGNATURES = 20
"""So many signatures are listed of what was allocated, those with most bytes."""
_FORCED = 32


def details_json(details: MemoryDetails, peak: AllocatorPeak) -> dict[str, object]:
    """``savings``, ``growth``, ``fragmentation`` and ``churn`` of one allocator.

    ``growth`` is None where no steps are known, ``fragmentation`` where nothing has an address.
    """
    growth, fragmentation = details.growth, details.fragmentation
    return {
        "savings": [
            {
                "kind": saving.kind,
                "title": saving.title,
                "bytes": saving.bytes,
                "lower_bytes": saving.lower_bytes,
                "is_replayed": saving.is_replayed,
                "peak_after_bytes": saving.peak_after,
                "cost_ps": saving.cost_ps,
                "suggestion": saving.suggestion,
                "rows": [dict(row) for row in saving.rows],
            }
            for saving in details.savings
        ],
        "growth": None if growth is None else _growth(growth),
        "fragmentation": None if fragmentation is None else _fragmentation(fragmentation, peak),
        "churn": _churn(details.churn),
    }


def moments_json(moments: Iterable[HighMoment]) -> list[dict[str, object]]:
    """The moments near the peak, the fullest first, each with all that was live at it."""
    return [
        _moment(moment.memory) | {"times_ps": list(moment.times_ps), "steps": list(moment.steps)}
        for moment in moments
    ]


def at_json(time_ps: int, memory: Iterable[AllocatorPeak]) -> dict[str, object]:
    """What every allocator held at ``time_ps`` (`peakline.memory.peak.moments.memory_at`)."""
    return {
        "time_ps": time_ps,
        "allocators": [{"allocator": one.allocator} | _moment(one) for one in memory],
    }


def markdown(findings: Iterable[Mapping[str, object]]) -> str:
    """Findings, as `Finding.as_json` gives them, as a list; names from files stay plain text."""
    lines = []
    for finding in findings:
        said = f"- **{finding['severity']}** `{finding['kind']}`: {_plain(str(finding['title']))}"
        lines.append(f"{said}\n  {_plain(str(finding['suggestion']))}\n")
    return "".join(lines)


def markdown_of_hosts(hosts: Mapping[str, Iterable[str]]) -> str:
    """Items of `markdown`, each with the hosts that have it at its end."""
    said = []
    for item, names in hosts.items():
        where = ", ".join(map(_plain, names))
        said.append(f"{item.rstrip()} (on {where})\n")
    return "".join(said)


def _plain(text: str) -> str:
    """``text`` as Markdown that shows it letter by letter, in one line."""
    retained = "".join(character if character.isprintable() else " " for character in text)
    marked = "".join(f"\\{c}" if c in _MARKS else _ENTITIES.get(c, c) for c in retained)
    # An address, and somebody's name after an at sign, become links without any mark.
    return marked.replace("://", ":&#47;/").replace("www.", "www&#46;")


_MARKS = frozenset("\\`*_[]|~$")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "#": "&#35;"}


def _growth(growth: AllocatorGrowth) -> dict[str, object]:
    marks = growth.marks
    changing = [group for group in growth.groups if group.pattern.kind != "steady"]
    changing.sort(key=lambda group: -group.pattern.bytes)
    return {
        "steps_found_by": marks.found_by,
        "steps_detail": marks.detail,
        "stride": growth.stride,
        "bytes_per_step": round(growth.bytes_per_step),
        "steps_left": growth.steps_left,
        "pattern": growth.total_pattern.kind,
        "steps": [
            {"step": number, "name": marks.label(place), "in_use_bytes": size}
            for place, (number, size) in enumerate(
                zip(marks.ids, growth.total.tolist(), strict=True)
            )
        ],
        "groups": [_group(growth, group) for group in changing[:_GROUPS]],
    }


def _group(growth: AllocatorGrowth, group: GroupGrowth) -> dict[str, object]:
    pattern, marks = group.pattern, growth.marks
    return group.signature.as_row() | {
        "buffer_bytes": group.signature.bytes,
        "forms": group.forms,
        "pattern": pattern.kind,
        "since_step": marks.ids[pattern.since],
        "since_step_name": marks.label(pattern.since),
        "until_step": marks.ids[pattern.until],
        "until_step_name": marks.label(pattern.until),
        "bytes_per_step": round(pattern.bytes_per_step),
        "kept_bytes": pattern.bytes,
        "held_bytes": group.held_bytes,
        "rises": pattern.rises,
        "confidence": round(pattern.confidence, 3),
    }


def _fragmentation(result: Fragmentation, peak: AllocatorPeak) -> dict[str, object]:
    rebuilt = result.at(peak.peak_time_ps)
    pins = result.pins
    worst = result.worst
    return {
        "reported_at_peak": peak.fragmentation_at_peak,
        "rebuilt_at_peak": None if rebuilt is None else round(rebuilt, 4),
        "touched_bytes": result.touched_bytes,
        "peak_bytes": result.peak_bytes,
        "forced": len(result.forced),
        "forced_bytes": result.forced_bytes,
        "wasted_bytes": result.recoverable_bytes,
        "forced_allocations": [
            one.signature.as_row()
            | {
                "time_ps": one.time_ps,
                "asked_bytes": one.bytes,
                "new_bytes": one.new_bytes,
                "free_bytes": one.free,
                "largest_hole_bytes": one.largest,
            }
            for one in sorted(result.forced, key=lambda one: (-one.new_bytes, -one.free))[:_FORCED]
        ],
        "worst_time_ps": None if worst is None else worst.time_ps,
        "holes": [
            {"from_bytes": hole.from_bytes, "count": hole.count, "bytes": hole.bytes}
            for hole in result.at_worst
        ],
        "pins": []
        if pins is None
        else [
            pin.signature.as_row()
            | {"count": pin.count, "bytes": pin.bytes, "since_ps": pin.since_ps}
            for pin in pins.pins
        ],
    }


def _churn(churn: AllocatorChurn) -> dict[str, object]:
    per_step, turnover = churn.bytes_per_step, churn.turnover
    return {
        "steps": churn.steps,
        "allocations": churn.allocations,
        "bytes": churn.bytes,
        "bytes_per_step": None if per_step is None else round(per_step),
        "turnover": None if turnover is None else round(turnover, 3),
        "freed_in_step": churn.same_step,
        "short_lived": churn.short,
        "signatures": [_repeated(one) for one in churn.signatures[:_SIGNATURES] if one.allocations],
    }


def _repeated(one: SignatureChurn) -> dict[str, object]:
    return one.signature.as_row() | {
        "buffer_bytes": one.signature.bytes,
        "allocations": one.allocations,
        "bytes": one.bytes,
        "freed_in_step": one.same_step,
        "short_lived": one.short,
        "most_live": one.most_live,
    }


def _moment(memory: AllocatorPeak) -> dict[str, object]:
    return {
        "time_ps": memory.peak_time_ps,
        "step": memory.peak_step,
        "in_use_bytes": memory.peak_bytes,
        "buffers": memory.as_json()["peak_buffers"],
    }
