"""The drawings of this package as figures of Plotly: the functions that notebooks call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from peakline.extras import require
from peakline.figures import drawings

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from peakline.figures.look import Drawing

Parameters = ParamSpec("Parameters")
_Draw = Callable[Parameters, "Drawing | None"]


def _as_figure(draw: _Draw[Parameters]) -> Callable[Parameters, Figure | None]:
    """The function ``draw`` with a Plotly figure in place of its drawing."""

    @wraps(draw)
    def figure(*args: Parameters.args, **options: Parameters.kwargs) -> Figure | None:
        require("notebook", f"peakline.figures.{draw.__name__}")
        drawn = draw(*args, **options)
        if drawn is None:
            return None
        from plotly.graph_objects import Figure

        # Without a template Plotly puts the look that its user chose, and 7 KB, into every figure.
        return Figure(data=list(drawn.traces), layout={"template": "none", **drawn.layout})

    own = inspect.signature(draw).replace(return_annotation="Figure | None")
    figure.__signature__ = own  # type: ignore[attr-defined]
    return figure


churn = _as_figure(drawings.churn)
device_time = _as_figure(drawings.device_time)
fragmentation = _as_figure(drawings.fragmentation)
growth_per_step = _as_figure(drawings.growth_per_step)
input_pipeline = _as_figure(drawings.input_pipeline)
kernels = _as_figure(drawings.kernels)
largest_buffers = _as_figure(drawings.largest_buffers)
memory_over_time = _as_figure(drawings.memory_over_time)
op_stats = _as_figure(drawings.op_stats)
peak_icicle = _as_figure(drawings.peak_icicle)
step_breakdown = _as_figure(drawings.step_breakdown)
