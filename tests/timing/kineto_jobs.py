"""Profiles of a PyTorch loop, made of tables: steps of 10 ms on one thread, and the ops in them."""

from collections.abc import Sequence

from tests.timing.traces import HOST_PLANE, profile_of

from peakline.findings.finding import Finding
from peakline.findings.time_answer import answer_time
from peakline.tables import Profile

US = 10**6
STEP_US, STEPS = 10_000, 8
Op = tuple[object, ...]


def job(ops: Sequence[Op], *, frame: str = "", first: int = 0) -> Profile:
    """Every step runs ``ops``: ``(name, begin, end)`` in us from its begin, then the dimensions and
    the types of its inputs where it has them. A ``frame`` lies around all of them.
    """
    events: list[tuple[object, ...]] = []
    stats: list[tuple[int, str, object]] = []
    steps = []
    for number in range(STEPS):
        at = number * STEP_US
        name = f"ProfilerStep#{first + number}"
        steps.append((name, at * US, (at + STEP_US) * US))
        events.append((*steps[-1], number, "user_annotation"))
        if frame:
            events.append((frame, at * US, (at + STEP_US - 1) * US, None, "python_function"))
        for op, begin, end, *more in ops:
            for kind, value in zip(("Input Dims", "Input type"), more, strict=False):
                if value:
                    stats.append((len(events), kind, value))
            category = "user_annotation" if "#" in str(op) else "cpu_op"
            events.append((op, (at + begin) * US, (at + end) * US, None, category))
    return profile_of({HOST_PLANE: {"1": events}}, steps, kind="chrome_trace", stats=stats)


def of_kind(profile: Profile, kind: str) -> list[Finding]:
    """The findings of time of one kind."""
    return [finding for finding in answer_time(profile).findings if finding.kind == kind]
