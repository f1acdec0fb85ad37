"""What the stages of input pipelines cost, and which one a program waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.figures.look import COLOURS, axis, figure, level_bars, row_axis
from peakline.figures.text import duration_text, fit, plain, time_unit
from peakline.timing.input_pipeline import Stage, input_stages

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from peakline.tables import Profile

_BARS = 40
_NAME = 60


def input_pipeline(profile: Profile) -> Figure | None:
    """The stages of input pipelines from the consumer down, at most 40: how long the program waited
    for each, and how long it worked besides. None where there is no pipeline.

    Raises InputError when the profile cannot be read.
    """
    stages = input_stages(profile)
    shown = stages[:_BARS]
    if not shown:
        return None
    blocking = [stage.blocking_ps for stage in shown]
    besides = [max(stage.self_ps - stage.blocking_ps, 0) for stage in shown]
    size, unit = time_unit(max(*blocking, *besides, 1))
    slow = [stage for stage in stages if stage.is_bottleneck]
    told = [_hover_text(stage) for stage in shown]
    traces = [
        level_bars(
            name,
            COLOURS[number],
            [value / size for value in values],
            list(range(len(shown))),
            customdata=told,
            hovertemplate="%{customdata}<extra></extra>",
        )
        for number, (name, values) in enumerate(
            (("the program waited", blocking), ("in the background", besides))
        )
    ]
    verdict = f"{slow[0].name}: {slow[0].why}" if slow else "no stage holds the program up"
    names = [plain(fit(stage.name, _NAME)) for stage in shown]
    return figure(
        traces,
        title="Stages of the input pipeline",
        subtitle=plain(verdict, 400),
        description=f"Bars of {len(shown)} of {len(stages)} stages; {verdict}.",
        height=180 + 26 * len(shown),
        bargap=0.2,
        barmode="stack",
        xaxis=axis(f"Self time ({unit})", rangemode="tozero"),
        yaxis=row_axis("", names, ticks=""),
    )


def _hover_text(stage: Stage) -> str:
    calls = stage.lengths
    return "<br>".join(
        (
            plain(stage.name, 200),
            (
                f"{calls.size} calls, {duration_text(int(calls.sum()))} in all, "
                f"longest {duration_text(int(calls[-1]))}"
            ),
            f"self time {duration_text(stage.self_ps)}",
            f"its consumer waited {duration_text(stage.wait_ps)}",
        )
    )
