"""What a notebook shows of a profile, and of the log directory that it lies in.

Of a profile it shows what ``peakline summary`` says, with small drawings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from peakline.document import limits
from peakline.document.model import capital, more_text
from peakline.document.profile import profile_text
from peakline.document.summary import summary_lines
from peakline.document.wording import NOTHING_NOTABLE
from peakline.errors import DeadlineError, PeaklineError
from peakline.findings.ranking import priorities
from peakline.findings.summary import notable_of
from peakline.render.notebook.findings import listed_findings
from peakline.render.notebook.memory import allocator_drawings, memory_parts, program_parts
from peakline.render.notebook.pieces import headed, line, listed, shown, table
from peakline.render.notebook.time import time_parts
from peakline.text import counted

if TYPE_CHECKING:
    from peakline.api import Profile, Repository, Session
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.time_answer import TimeAnswer

Made = TypeVar("Made")
_SILENT = {"no_memory_events", "no_steps"}
"""Kinds of warnings that the answers say already."""


def profile_parts(profile: Profile) -> list[str]:
    """Memory and time, what to fix first, what is behind both, and what was lost.

    What fails of one leaves the other. What had to be guessed is counted in ``profile.warnings``
    the first time only.
    """
    result = [headed(profile.path, profile_text(profile, moment=True))]
    memory, no_memory = _tried(lambda: _memory(profile))
    time, no_time = _tried(profile.time)
    result += [line(text) for text in dict.fromkeys((no_memory, no_time)) if text]
    if memory is not None and time is not None:
        result += _attempted(lambda: _said(profile, memory, time))
    if memory is not None:
        result += _attempted(lambda: _of_memory(profile, memory))
    if time is not None:
        result += _attempted(lambda: _of_time(time))
    warnings = [warning for warning in profile.warnings if warning.kind not in _SILENT]
    texts = [f"{w.detail} ({w.count:,})" if w.count > 1 else w.detail for w in warnings]
    return [*result, listed("Warnings", [shown(one) for one in texts])]


def _memory(profile: Profile) -> MemoryAnswer:
    profile.expect("events", "allocator_events")
    return profile.memory()


def _tried(make: Callable[[], Made]) -> tuple[Made | None, str]:
    """What was made, or one line that says why not."""
    try:
        return make(), ""
    except DeadlineError:
        return None, "It takes long: profile.memory() and profile.time() do not hurry."
    except PeaklineError as error:
        return None, f"error: {error}"
    except Exception as error:  # noqa: BLE001 (as in `html_of`)
        return None, f"error: {type(error).__name__}: {error}"


def _attempted(make: Callable[[], Sequence[str]]) -> Sequence[str]:
    result, why = _tried(make)
    return [line(why)] if result is None else result


def _said(profile: Profile, memory: MemoryAnswer, time: TimeAnswer) -> list[str]:
    """The lines of the summary and the findings, as on the command line."""
    lines = summary_lines(profile, memory, time)
    result = []
    if memory.nothing and not any(one[0] == "memory" for one in lines):
        result.append(line(capital(memory.nothing)))
    if lines:
        rows = [[f"<strong>{shown(capital(a))}</strong>", shown(b), shown(c)] for a, b, c in lines]
        result.append(table(["", "", ""], rows))
    first = [one.finding for one in priorities(memory.findings, time.findings)]
    if first:
        rest = ": profile.findings()"
        result.append(listed_findings(first, "To fix first", rest=rest))
    elif notable := notable_of(memory, time):
        result.append(listed("Worth a look", [shown(one.text) for one in notable]))
    elif lines:
        result.append(line(NOTHING_NOTABLE))
    elif "nodes" in profile.tables:
        result.append(line('Its graph: profile.tool("graph"), or peakline graph.'))
    return result


def _of_memory(profile: Profile, answer: MemoryAnswer) -> list[str]:
    if not answer.allocators:
        return program_parts(profile) if answer.nothing else []
    return memory_parts(answer, allocator_drawings(profile, answer))


def _of_time(answer: TimeAnswer) -> list[str]:
    return list(time_parts(answer))


def repository_parts(repository: Repository) -> list[str]:
    """The sessions, newest first, with their hosts."""
    sessions = repository.sessions()
    rows = [
        [shown(one.name), f"{len(one.hosts):,}", shown(", ".join(one.hosts), 120)]
        for one in sessions[: limits.SESSIONS.notebook]
    ]
    result = [headed(repository.logdir, counted(len(sessions), "session"))]
    result.append(table(["Session", "Hosts", ""], rows, right=[1]) if rows else "")
    left = len(sessions) - len(rows)
    return [*result, line(more_text(left), quiet=True) if left else ""]


def session_parts(session: Session) -> list[str]:
    """One of the sessions of a `Repository`."""
    hosts = [shown(one) for one in session.hosts]
    return [headed(session.name, session.path), listed("Hosts", hosts, limits.HOSTS.notebook)]
