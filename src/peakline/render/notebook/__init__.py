"""What a notebook shows of a value: `html_of`, HTML without a script, small whatever it shows.

The facts and tables are those of `peakline.document`, as on the command line. A function of a
module here says it of one kind of value, as pieces of HTML, the most important first. Colours of
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
_PARTS = {
    "Profile": "profile.profile_parts",
    "MemoryAnswer": "memory.memory_answer_parts",
    "TimeAnswer": "time.time_answer_parts",
    "StepFacts": "time.steps_parts",
    "StepPath": "time.path_parts",
    "LaunchSummary": "time.launches_parts",
    "Fit": "answers.fit_parts",
    "Fits": "answers.fits_parts",
    "Check": "answers.check_parts",
    "Checks": "answers.checks_parts",
    "Finding": "findings.finding_parts",
    "Findings": "findings.findings_parts",
    "Comparison": "answers.comparison_parts",
    "ToolResult": "answers.answer_parts",
    "Answer": "answers.answer_parts",
    "Repository": "profile.repository_parts",
    "Session": "profile.session_parts",
    "Several": "findings.several_parts",
}
"""Which module shows the values of a class, by which of its functions."""


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
    names = (name for kind in type(value).__mro__ if (name := _PARTS.get(kind.__name__)))
    module, _, name = next(names).partition(".")
    parts: Callable[[object], list[str]] = getattr(import_module(f"{__name__}.{module}"), name)
    return parts


def _bounded(parts: list[str]) -> str:
    """The first parts, as far as they go."""
    result, size = [], 0
    for part in parts:
        size += len(part.encode("utf-8", "replace"))
        if size > _MOST:
            result.append(line("The rest is too long for a notebook.", quiet=True))
            break
        result.append(part)
    return "".join(result)
