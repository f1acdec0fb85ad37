"""The ``critical_path`` tool: the chain of work, launches and waits that a step's end waited for.

``event`` and ``line`` are those of the ``timeline`` tool. docs/critical-path.md has the rules.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from peakline import timing
from peakline.text import check_repeated
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peakline.tables import Profile
    from peakline.timing.critical_path.path import NearPiece, Piece, StepPath
    from peakline.trace.events import Trace

_LONGEST_NAME = 1000


class CriticalPathParameters(Parameters):
    """The parameters; text is accepted for every value."""

    step: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="the step's id or name. Default: the one that takes the median time",
    )
    device: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="this device. Default: the one whose part of the step ends last",
    )


def _run(profile: Profile, parameters: CriticalPathParameters, _output_format: str) -> bytes:
    from peakline.trace.events import read_with_steps, trace_of

    read_with_steps(profile)
    step = parameters.step
    if step is None:
        step = timing.median_step(profile, parameters.device)
    path = timing.critical_path_of(profile, step, parameters.device)
    return compact_json(_document(trace_of(profile), path))


def _document(trace: Trace, path: StepPath | None) -> dict[str, Any]:
    if path is None:
        facts = dict.fromkeys(
            ("step_id", "step_name", "device", "source", "start_ps", "end_ps", "explained")
        )
        return facts | {
            "busy_ps": 0, "wait_ps": 0, "guesses": 0, "is_cut": False,
            "segments": [], "ops": [], "kinds": {}, "near": [],
        }  # fmt: skip
    check_repeated([*(one.name for one in path.pieces), *(one.name for one in path.near)])
    busy = path.busy_ps
    counts = Counter((piece.kind, piece.name) for piece in path.pieces)
    return {
        "step_id": path.step_id,
        "step_name": path.step or None,
        "device": path.device,
        "source": path.source,
        "start_ps": path.start_ps,
        "end_ps": path.end_ps,
        "explained": path.explained,
        "busy_ps": busy,
        "wait_ps": path.end_ps - path.start_ps - busy,
        "guesses": path.guesses,
        "is_cut": path.is_cut,
        "segments": [
            {
                "op": piece.name,
                "kind": piece.kind,
                "why": piece.why,
                **place,
                "start_ps": piece.begin_ps,
                "end_ps": piece.end_ps,
                "own_ps": piece.busy_ps,
                "wait_ps": piece.wait_ps,
                "slack_ps": piece.slack_ps,
            }
            for piece, place in zip(path.pieces, _places(trace, path.pieces), strict=True)
        ],
        "ops": [
            {"op": name, "kind": kind, "own_ps": own, "count": counts[kind, name]}
            for kind, name, own in path.by_name()
        ],
        "kinds": path.by_kind(),
        "near": [
            {
                "op": piece.name,
                **place,
                "start_ps": piece.begin_ps,
                "end_ps": piece.end_ps,
                "slack_ps": piece.slack_ps,
            }
            for piece, place in zip(path.near, _places(trace, path.near), strict=True)
        ],
    }


def _places(trace: Trace, pieces: Sequence[Piece | NearPiece]) -> list[dict[str, Any]]:
    """Where each piece is: its plane and line, and its event as ``timeline`` numbers them."""
    import numpy as np

    rows = trace.rows(np.array([max(piece.event, 0) for piece in pieces], np.int64)).tolist()
    result = []
    for piece, row in zip(pieces, rows, strict=True):
        line = trace.lines[piece.line] if piece.line >= 0 else None
        result.append(
            {
                "device": None if line is None else trace.planes[line.plane].name,
                "line": None if line is None else piece.line,
                "line_name": piece.place if line is None else line.name,
                "event": row if piece.event >= 0 else None,
            }
        )
    return result


TOOL = Tool(
    name="critical_path",
    doc="The chain of work, launches and waits that the end of a step waited for.",
    parameters=CriticalPathParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",)),
    run=_run,
)
