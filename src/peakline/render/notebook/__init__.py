"""What a notebook shows of a value: `html_of`, HTML without a script, small whatever it shows.

The facts and tables are those of `peakline.document`, as on the command line. A module here
says it of one kind of value, by ``parts``: pieces of HTML, the most important first. Colours of
text and background are those of the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from peakline.deadline import Deadline, within
from peakline.errors import DeadlineError, PeaklineError
from peakline.render.notebook.pieces import line

__all__ = ["html_of"]

_SECONDS = 20
"""A cell does not wait longer than this for the answer."""
_MOST = 60_000 - 500
"""The last parts are left out beyond so many bytes, but for a line that says so."""
_MODULES = {
    "Profile": "profile",
    "MemoryAnswer": "memory",
    "TimeAnswer": "time",
    "StepFacts": "steps",
    "StepPath": "path",
    "LaunchSummary": "launches",
    "Fit": "fit",
    "Fits": "fits",
    "Check": "check",
    "Checks": "checks",
    "Finding": "finding",
    "Findings": "findings",
    "Comparison": "comparison",
    "ToolResult": "answer",
    "Answer": "answer",
    "Repository": "repository",
    "Session": "session",
    "Several": "several",
}
"""Which module shows the values of a class."""


def html_of(value: object) -> str:
    """``value`` as a few lines and small tables of HTML: self-contained, and all text escaped.

    Never raises: where there is no answer, it says why.
    """
    try:
        with within(Deadline(_SECONDS)):
            parts = _parts_of(value)(value)
    except DeadlineError:
        parts = [line(f"It takes longer than {_SECONDS} seconds, so that it is not shown here.")]
    except PeaklineError as error:
        parts = [line(f"error: {error}")]
    except Exception as error:  # noqa: BLE001 (a cell that only shows its value must not fail)
        parts = [line(f"error: {type(error).__name__}: {error}")]
    # Notebooks set what stands between dollar signs as mathematics.
    return f'<div class="peakline tex2jax_ignore mathjax_ignore">{_bounded(parts)}</div>'


def _parts_of(value: object) -> Callable[[object], list[str]]:
    names = (name for kind in type(value).__mro__ if (name := _MODULES.get(kind.__name__)))
    parts: Callable[[object], list[str]] = import_module(f"{__name__}.{next(names)}").parts
    return parts


def _bounded(parts: list[str]) -> str:
    """The first parts, as far as they go."""
    found, size = [], 0
    for part in parts:
        size += len(part.encode("utf-8", "replace"))
        if size > _MOST:
            found.append(line("The rest is too long for a notebook.", quiet=True))
            break
        found.append(part)
    return "".join(found)
