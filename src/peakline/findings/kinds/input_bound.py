"""Training waits for its input: inside of the steps, or between them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, about_frame, gain_of
from peakline.timing.input_pipeline import input_stages

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext
    from peakline.tables import Profile
    from peakline.timing.frame_work import FrameWork

STAGE = ("stage", "category", "occurrences", "self_ps", "wait_ps", "is_bottleneck")

# Shares of the time that training waits for input: XProf's bounds, moderate and high.
KIND = Kind(
    "input_bound",
    __doc__,
    about="time",
    phrase="training waits for its input",
    severity="warning",
    least=0.05,
    much=0.20,
    section="input",
    columns=COLUMNS | FRAME | columns("input_wait_ps", "between_steps_ps", "bottleneck", *STAGE),
    saves="gain_share",
)

_ROWS = 10
_PARALLEL = re.compile(r"(?:legacy)?parallel|(?:numa)?mapandbatch")
"""Stages that always run on several threads: tensorflow/core/kernels/data, map_and_batch too."""
_APART = 0.1


def find(context: TimeContext) -> Findings:
    """At most one, with the stages of the input pipeline."""
    facts = context.facts
    waits = context.input_waits
    share = waits.share
    if share < KIND.least:
        return
    stages = _stages(context.profile)
    slowest = next((str(stage["stage"]) for stage in stages if stage["is_bottleneck"]), "")
    is_python = any(stage.is_python for stage in input_stages(context.profile))
    function = _function(context)
    doing = "" if function is None else f"; the time goes to {function.frame.title}"
    which = f"; {_short(slowest)} holds the pipeline up" if slowest else ""
    which += ", in a function of Python" if is_python else ""
    # What XProf says of the input counts what lies within the steps.
    waited = waits.within_ps + waits.between_ps
    apart = waits.between_ps / waited
    where = f", {apart:.0%} of it between the steps" if apart >= _APART else ""
    yield KIND.finding(
        f"{share:.0%} of the time training waits for input{where}{which}{doing}",
        {
            "steps": waits.steps,
            "wall_ps": waits.whole_ps - waits.between_ps,
            "input_wait_ps": waits.within_ps,
            "between_steps_ps": waits.between_ps,
            "bottleneck": slowest,
            **({} if function is None else about_frame(function)),
            **gain_of(facts, share, waited * facts.lanes),
        },
        advice(slowest, is_python=is_python),
        tuple(stages[:_ROWS]),
    )


def _function(context: TimeContext) -> FrameWork | None:
    """The function of the program that makes the input meanwhile, where frames were recorded."""
    idle = context.idle
    result = [] if idle is None else idle.by_function(idle.is_input)
    return result[0] if result and result[0].share >= KIND.least else None


def _stages(profile: Profile) -> list[dict[str, object]]:
    """The stages of the input pipeline, the slowest first."""
    if not profile.has_rows("input_pipeline"):
        return []
    rows = profile.columns("input_pipeline").to_pylist()
    rows.sort(key=lambda row: -row["self_ps"])
    return [{name: row[name] for name in STAGE} for row in rows]


def advice(stage: str, *, is_python: bool = False) -> str:
    """What to do about the stage that is slowest; ``is_python`` says that a function of Python
    takes its time.
    """
    kind = stage.rpartition("::")[2].lower()
    if "multiprocessingdataloader" in stage.lower():
        return (
            "Processes of its own prepare the batches already: give the DataLoader more of them "
            "(num_workers), keep them (persistent_workers), let them work further ahead "
            "(prefetch_factor), or make what __getitem__ and collate_fn do cheaper."
        )
    if "dataloader" in stage.lower():
        return (
            "Let processes of their own prepare the batches (num_workers, persistent_workers, "
            "prefetch_factor of the DataLoader), into pinned memory."
        )
    if is_python:
        how = (
            "A function of Python runs there (tf.py_function, tf.numpy_function, from_generator); "
            "Python's lock lets one thread at a time compute, so more of them "
            "(num_parallel_calls) help only where it waits, as for a file. Else write it with ops "
            "of TensorFlow, let several processes run it (multiprocessing), or compute once what "
            "is the same in each epoch (Dataset.cache)"
        )
    elif _PARALLEL.match(kind):
        how = (
            f"{_short(stage)} runs in parallel already: give it more threads, make what it does "
            "cheaper, or cache its result (Dataset.cache)"
        )
    elif kind.startswith(("map", "filter", "flatmap", "batch", "interleave")):
        how = (
            f"Run {_short(stage)} in parallel (num_parallel_calls=tf.data.AUTOTUNE, "
            "num_workers of a DataLoader), or cache its result"
        )
    elif kind.startswith("generator"):
        how = (
            "One thread of Python makes all batches, under its lock: let ops of TensorFlow do it "
            "(from_tensor_slices, TFRecord, map), or several processes (multiprocessing)"
        )
    elif kind == "prefetch":
        how = (
            "The threads that prepare the batches had no processor, or too little time: make what "
            "they do cheaper, or cache its result (Dataset.cache)"
        )
    elif kind.startswith(("tfrecord", "textline", "fixedlength", "recordio", "arrayrecord")):
        how = "Read several files at a time (Dataset.interleave with num_parallel_calls)"
    else:
        how = "Prepare batches in parallel (num_parallel_calls, num_workers)"
    if "::prefetch" in stage.lower():
        return f"{how}."  # its last stage works ahead already
    return f"{how}; end the pipeline with prefetch, so that the next batch is ready in time."


def _short(stage: str) -> str:
    """What a program calls a stage: ``Map`` of ``Iterator::Root::Prefetch::Map``."""
    if "dataloader" in stage.lower():
        return "the DataLoader"
    above, _, name = stage.rpartition("::")
    parent = above.rpartition("::")[2]
    # What runs for each file, or each element, is another stage than its like above.
    is_inner = "interleave" in parent.lower() or "flatmap" in parent.lower()
    return f"{parent}::{name}" if is_inner else name or stage
