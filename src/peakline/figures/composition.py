"""What memory is made of at the peak: an icicle of the scopes of the op names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline.figures.drawn import drawn_allocators
from peakline.figures.look import (
    INK,
    MUTED,
    QUIET,
    TINTS,
    Drawing,
    drawing,
    duration_text,
    fit,
    form_text,
    plain,
)
from peakline.memory.over_time.trees import NO_OP, SPECIAL, Scope, scopes_of, without_small
from peakline.memory.peak.explained import UNATTRIBUTED, AllocatorPeak
from peakline.tables.profile_facts import is_moment
from peakline.text import share_text, size_text

if TYPE_CHECKING:
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.tables import Profile

_SCOPES = 200
_LEVELS = 7
"""So many levels are drawn at a time; a click on a scope shows those below it."""
_FORMS = 4
"""So many forms of an op's buffers are named."""


def peak_icicle(
    profile: Profile, *, allocator: str | None = None, answer: MemoryAnswer | None = None
) -> Drawing | None:
    """What is live at the peak of one allocator, by scope: an op's name is split at its slashes.

    The allocator is the one with the highest peak where none is named. The root is the peak, and
    the parts of every scope add up to it exactly; scopes beyond the 200 largest are put together
    as ``(N smaller)``. Memory from before the profile, reserved memory and what no record explains
    are parts of their own. Where records are missing the buffers may come to more than the
    allocator says is in use; then the root is their sum, and the subtitle says by how much.

    None where the profile has no records, or nothing is live. Raises NotFoundError for an unknown
    allocator.
    """
    result = drawn_allocators(profile, allocator, answer)
    if not result:
        return None
    peak, name = result[0].peak, result[0].name
    whole = scopes_of(peak.peak_buffers, name)
    if not whole.bytes:
        return None
    root = without_small(whole, _SCOPES)
    rows: list[tuple[Any, ...]] = []
    waiting: list[tuple[Scope, str, str]] = [(root, "", MUTED)]
    while waiting:
        scope, parent, colour = waiting.pop(0)
        own, label = str(len(rows)), plain(fit(scope.label, 60))
        shade = colour if parent else "#E6E6E6"
        rows.append((own, parent, label, scope.bytes, _text(scope, whole.bytes), shade))
        for k, part in enumerate(scope.parts):
            waiting.append((part, own, _colour(part, k) if not parent else colour))
    ids, parents, labels, values, texts, colours = map(list, zip(*rows, strict=True))
    over = sum(-b.bytes for b in peak.peak_buffers if b.op == UNATTRIBUTED and b.bytes < 0)
    subtitle = f"{name}: {size_text(peak.peak_bytes)} ({peak.peak_bytes:,} bytes)"
    # A file without records of its own describes one moment.
    moment = is_moment(profile)
    if not moment:
        subtitle += f" at {duration_text(peak.peak_time_ps)}"
    if over:
        subtitle += (
            f"; the records name {size_text(over)} more than is in use, so some frees are missing"
        )
    return drawing(
        [
            {
                "type": "icicle",
                "ids": ids,
                "parents": parents,
                "labels": labels,
                "values": values,
                "text": [size_text(value) for value in values],
                "customdata": texts,
                "branchvalues": "total",
                "sort": False,
                "tiling": {"orientation": "v"},
                "leaf": {"opacity": 1},
                "textfont": {"color": INK},
                "marker": {"colors": colours, "line": {"width": 1, "color": "white"}},
                "textinfo": "label+text",
                "hovertemplate": "%{customdata}<extra></extra>",
                "root": {"color": "#EEEEEE"},
                "pathbar": {"visible": True},
                "maxdepth": _LEVELS,
            }
        ],
        title="In memory, by scope" if moment else "In memory at the peak, by scope",
        subtitle=plain(subtitle, 400),
        description=_description(name, peak, whole),
        height=120 + 58 * min(_depth(root), _LEVELS),
        margin={"l": 12, "r": 12, "t": 92, "b": 12},
        uniformtext={"minsize": 9, "mode": "hide"},
    )


def _depth(scope: Scope) -> int:
    """The number of levels of the tree."""
    level, depth = [scope], 0
    while level:
        level, depth = [part for one in level for part in one.parts], depth + 1
    return depth


def _colour(part: Scope, place: int) -> str:
    if part.path in SPECIAL or part.path == NO_OP or part.merged:
        return QUIET
    return TINTS[place % len(TINTS)]


def _text(scope: Scope, whole: int) -> str:
    lines = [plain(scope.path or scope.label)]
    if scope.merged:
        lines = [f"{scope.merged:,} smaller parts of {plain(scope.path) or 'the whole'}"]
    lines.append(
        f"<b>{size_text(scope.bytes)}</b> ({scope.bytes:,} bytes), {share_text(scope.bytes, whole)}"
    )
    if scope.count:
        lines.append(f"{scope.count:,} buffer{'' if scope.count == 1 else 's'}")
    for (region, data_type, shape), (size, count) in _forms(scope)[:_FORMS]:
        form = plain(form_text(region, data_type, shape), 80)
        if form:
            lines.append(f"{count:,} of {form}: {size_text(size)}")
    if len(_forms(scope)) > _FORMS:
        lines.append(f"and {len(_forms(scope)) - _FORMS:,} more forms")
    return "<br>".join(lines)


def _forms(scope: Scope) -> list[tuple[tuple[str, str, str], tuple[int, int]]]:
    """The forms of an op's buffers over all steps of allocation, most bytes first."""
    forms: dict[tuple[str, str, str], tuple[int, int]] = {}
    for buffer in scope.buffers:
        key = (buffer.region_type, buffer.data_type, buffer.shape)
        size, count = forms.get(key, (0, 0))
        forms[key] = (size + buffer.bytes, count + buffer.count)
    return sorted(forms.items(), key=lambda item: (-item[1][0], item[0]))


def _description(name: str, peak: AllocatorPeak, whole: Scope) -> str:
    parts = ", ".join(
        f"{fit(part.label, 60)} {share_text(part.bytes, whole.bytes)}" for part in whole.parts[:5]
    )
    return (
        f"Icicle of the {size_text(peak.peak_bytes)} in use at the peak of {name}, by scope of the "
        f"op names. Largest parts: {parts}."
    )
