"""Python code of the program takes the step, while nothing else works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, about_frame, frame_rows, gain_of
from peakline.trace.calls import WORDS, Call

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

# A tracer of Python slows Python down, most of all many small calls: below half of the time and
# more what it shows is worth knowing, and no alarm.
KIND = Kind(
    "python_work",
    __doc__,
    about="time",
    phrase="Python code takes the step",
    severity="warning",
    least=0.10,
    much=0.60,
    section="steps",
    columns=COLUMNS | FRAME | columns(python_ps="Time in Python"),
    saves="gain_share",
)

_WAITS = (Call.SLEEP, Call.LOCK)
_SURE = (Call.FILE, Call.PRINT, Call.COLLECT, Call.COPY, Call.READ, Call.HISTOGRAM)
"""What no tracer makes long: it counts as much from a quarter of the time on."""
_MUCH = 0.25


def find(context: TimeContext) -> Findings:
    """At most one, of steps whose Python frames were recorded."""
    idle = context.idle
    if idle is None:
        return
    waits = np.isin(idle.call, _WAITS)
    chosen = (idle.is_python | (idle.call != Call.WORK)) & ~waits & idle.is_usual & ~idle.is_input
    chosen &= (idle.call != Call.TRANSFER) & (idle.threads.frame >= 0)
    lost = idle.total(chosen)
    wall = idle.threads.wall_ps
    share = lost / wall if wall else 0.0
    result = idle.by_function(chosen)
    if share < KIND.least or not result:
        return
    path = [(one, ps) for one, ps in idle.path(chosen) if ps >= 0.5 * lost]
    first = result[0]
    outer = path[-2][0] if len(path) > 1 and path[-1][0] == first.frame else None
    if outer is not None and (len(path) < 3 or outer == path[0][0]):
        outer = None
    # The function that is the step itself holds all the others.
    where = first.frame.title if outer is None else f"{outer.title}, in {first.frame.title}"
    kind = "" if first.call == Call.WORK else f" {WORDS[first.call]}"
    by = f" (calls {first.callee})" if first.callee and first.call != Call.WORK else ""
    is_sure = first.call in _SURE and first.share >= _MUCH
    # Below the step itself one function has to answer for it.
    answers = max([first.share, *(ps / wall for _, ps in path[1:])])
    whole = "step" if idle.threads.has_steps else "profile's"
    yield KIND.finding(
        f"{share:.0%} of the {whole} time goes to Python code while nothing else works, most of "
        f"it{kind} in {where}{by}",
        {
            "steps": idle.threads.steps,
            "wall_ps": wall,
            "python_ps": lost,
            **about_frame(first),
            "path": " > ".join(one.title for one, _ in path),
            **gain_of(context.facts, share, lost * context.facts.lanes),
        },
        _advice(first.call),
        frame_rows(result),
        severity="warning" if is_sure or answers >= KIND.much else "info",
    )


def _advice(call: Call) -> str:
    if call == Call.FILE:
        return (
            "Write files on another thread, or less often: checkpoints asynchronously "
            "(orbax AsyncCheckpointer, torch.distributed.checkpoint.async_save, "
            "tf.train.CheckpointOptions(enable_async=True))."
        )
    if call == Call.PRINT:
        return "Print every hundredth step, or give it to a logger with a queue of its own."
    if call == Call.COLLECT:
        return "Switch automatic collection off (gc.freeze, gc.disable) and collect rarely."
    if call == Call.COPY:
        return "Copy less often, or only what changed; deepcopy walks through every object."
    if call == Call.HISTOGRAM:
        return "Where they are for a log, count every hundredth step, or of a sample."
    if call == Call.READ:
        return (
            "Read values of the device only now and then, after the next step was started: let "
            "losses and metrics add up on the device."
        )
    return (
        "Do it on other processes while the device works (num_workers of a DataLoader, "
        "tf.data's map with num_parallel_calls and prefetch, a thread with a queue), once instead "
        "of in every step, or with arrays instead of loops over single items."
    )
