"""Two sessions compared: the answer of `peakline diff` as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from peakline.deadline import check_deadline
from peakline.engine.answers import Answer
from peakline.errors import UsageError
from peakline.repository import HostFile, Session
from peakline.tables import Profile

COMPARISONS = ("json", "markdown")
"""The formats of a comparison, the default first."""
_SIDES = ("first", "second")


def checked_comparison(format: str | None) -> str:  # noqa: A002 (the word of the command line)
    """``format``, or the first one for None; raises UsageError for one that there is not."""
    chosen = COMPARISONS[0] if format is None else format
    if chosen not in COMPARISONS:
        shown = f"{chosen!r:.80}"
        there = ", ".join(COMPARISONS)
        raise UsageError(f"a comparison has no format {shown}; there is: {there}").quoting(shown)
    return chosen


def comparison(
    sides: Sequence[tuple[Session, HostFile]],
    chosen: str,
    lease: Callable[[HostFile], AbstractContextManager[Profile]],
) -> Answer:
    """What changed from the first of two profiles to the second, in the format ``chosen``.

    One after the other is taken on ``lease``, so that they need not both be in memory. Raises
    NotFoundError or InputError when a file cannot be read.
    """
    from peakline.compare.comparison import compare_profiles, profile_state

    states, warnings = [], []
    for side, (session, file) in zip(_SIDES, sides, strict=True):
        check_deadline()
        name = file.path.rstrip("/").rpartition("/")[2]
        with lease(file) as profile, profile.question():
            state = profile_state(profile, path=f"{session.name}/{name}")
        states.append(state)
        warnings += [
            warning._replace(detail=f"{side}: {warning.detail}") for warning in state.warnings
        ]
    found = compare_profiles(*states)
    if chosen == "markdown":
        from peakline.render.markdown.diff import comparison_markdown

        text = comparison_markdown(found)
    else:
        text = json.dumps(found.as_json(), indent=2, allow_nan=False) + "\n"
    return Answer(text.encode(), chosen, tuple(warnings))
