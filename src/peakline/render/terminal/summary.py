"""Memory and time on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.findings.summary import FIRST, notable_of
from peakline.memory.allocator_names import shown_names
from peakline.render.document.summary import summary_lines
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.render.terminal.time_parts import profile_line
from peakline.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.findings.headline.sentence import Sentence
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.ranking import Priority
    from peakline.findings.time_answer import TimeAnswer

_ALLOCATORS, _DEVICES, _PARTS = 4, 4, 4
_NAME = 60
_LEAST = 0.005
"""Half a per cent is the least that is shown as one."""
_VERBS = {"memory": "peakline memory", "time": "peakline steps"}


def print_summary(
    profile: Profile, memory: MemoryAnswer, time: TimeAnswer, first: Sequence[Priority]
) -> None:
    """Print what memory and time do, then what to fix first."""
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps)]
    lines = summary_lines(profile, memory, time)
    if lines:
        table = plain_table(("", "", ""), lines)
        table.show_header = False
        parts += ["", table]
    else:
        graph = "; see peakline graph for its graph" if "nodes" in profile.tables else ""
        parts += ["", Text(f"neither memory nor time in this profile{graph}")]
    unjudged = time.times is None and any(line[0] == "time" for line in lines)
    if lines or first:
        notable = () if first else notable_of(memory, time)
        parts += ["", *_first(first, notable, shown_names(profile), unjudged=unjudged)]
    show(parts)


def _first(
    first: Sequence[Priority],
    notable: Sequence[Sentence],
    names: dict[str, str],
    *,
    unjudged: bool,
) -> list[RenderableType]:
    if notable:
        lines = [Text(one_line(sentence.text)) for sentence in notable]
        return [Text("worth a look", style="bold"), *map(indented, lines)]
    if not first:
        but = "; what a step takes is not judged, none are marked" if unjudged else ""
        return [Text(f"nothing stands out{but}", style="bold")]
    parts: list[RenderableType] = [Text("to fix first", style="bold")]
    for number, one in enumerate(first[:FIRST], 1):
        finding = one.finding
        title = f"{number}. {finding.severity} ({one.about}): {finding.title_with(names)}"
        parts += [
            indented(Text(one_line(title), style="bold yellow")),
            indented(indented(Text(one_line(finding.suggestion)))),
        ]
    if len(first) > FIRST:
        others = {one.about for one in first[FIRST:]}
        verbs = [verb for about, verb in _VERBS.items() if about in others]
        parts.append(indented(Text(f"and {len(first) - FIRST} more: {', '.join(verbs)}")))
    return parts
