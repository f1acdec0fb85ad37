"""Memory and time on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.document.headline import summary_headline
from peakline.document.summary import is_printed, is_unread, summary_lines
from peakline.findings.summary import FIRST, notable_of
from peakline.memory.allocator_names import shown_names
from peakline.render.terminal.layout import Indented
from peakline.render.terminal.screen import Shown, Text, headed, indented, severity_style, show
from peakline.render.terminal.table import Labelled
from peakline.tables.profile_facts import is_moment

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.findings.headline.sentence import Sentence
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.ranking import Priority
    from peakline.findings.time_answer import TimeAnswer

_UNREAD = (
    "not judged: none of the events is known as an op, a step or work of a device; peakline trace "
    "shows them"
)
_PRINTED = "not judged: a printed table says how long, not when or why"
_VERBS = {"memory": "peakline memory", "time": "peakline steps"}


def print_summary(
    profile: Profile, memory: MemoryAnswer, time: TimeAnswer, first: Sequence[Priority]
) -> None:
    """Print what memory and time do, then what to fix first."""
    sentence = summary_headline(profile, memory, time, first, moment=is_moment(profile))
    parts = headed(sentence, profile)
    lines = summary_lines(profile, memory, time)
    if lines:
        parts += ["", Labelled(lines)]
    elif not first:
        graph = "; see peakline graph for its graph" if "nodes" in profile.tables else ""
        parts += ["", Text(f"neither memory nor time in this profile{graph}")]
    unjudged = time.times is None and any(line[0] == "time" for line in lines)
    if not first and is_unread(profile, time):
        parts += ["", Text(_UNREAD, "bold", hang=2)]
    elif not first and is_printed(profile, time) and not memory.allocators:
        parts += ["", Text(_PRINTED, "bold", hang=2)]
    elif lines or first:
        notable = () if first else notable_of(memory, time)
        parts += ["", *_first(first, notable, shown_names(profile), unjudged=unjudged)]
    show(parts)


def _first(
    first: Sequence[Priority], notable: Sequence[Sentence], names: dict[str, str], *, unjudged: bool
) -> list[Shown]:
    if notable:
        lines = [indented(Text(sentence.text, hang=2)) for sentence in notable]
        return [Text("worth a look", "bold"), *lines]
    if not first:
        but = "; what a step takes is not judged, none are marked" if unjudged else ""
        return [Text(f"nothing stands out{but}", "bold")]
    parts: list[Shown] = [Text("to fix first", "bold")]
    for number, one in enumerate(first[:FIRST], 1):
        finding = one.finding
        title = f"{number}. {finding.severity} ({one.about}): {finding.title_with(names)}"
        parts += [
            indented(Text(title, severity_style(finding.severity), 3)),
            Indented(Text(finding.suggestion), 5),
        ]
    if len(first) > FIRST:
        others = {one.about for one in first[FIRST:]}
        verbs = [verb for about, verb in _VERBS.items() if about in others]
        parts.append(indented(Text(f"and {len(first) - FIRST} more: {', '.join(verbs)}")))
    return parts
