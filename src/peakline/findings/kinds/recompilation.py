"""Programs are compiled after the first two steps, and which they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.context import Findings
from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS, ROWS
from peakline.findings.time_context import TimeContext
from peakline.timing.ops.eager import on_host
from peakline.timing.programs.compiled import (
    first_calls_ps,
    programs_compiled,
    regions_compiled,
    what_changed,
)
from peakline.timing.steps.facts import FEWEST_STEPS, WARM_UP
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.events import trace_of
from peakline.trace.intervals import union

if TYPE_CHECKING:
    from peakline.trace.frames import Frame

# Compilation after the first steps, as a share of those steps' time.
KIND = Kind(
    "recompilation",
    __doc__,
    about="time",
    phrase="programs are compiled again and again",
    severity="warning",
    least=0.05,
    much=0.20,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("compiling_steps", "programs", "compile_ps", changed="What changed"),
    saves="gain_share",
)

_PROGRAMS = (
    "Give every call the same shapes and types: pad batches to one length or to a few, drop the "
    "last short one, pass numbers that change as arrays instead of Python values, and set "
    "input_signature (tf.function) or keep static arguments constant (jax.jit)."
)
_REGIONS = (
    "Compile for all sizes at once (torch.compile(dynamic=True), torch._dynamo.mark_dynamic), or "
    "give every call the same: pad batches, drop the last short one. TORCH_LOGS=recompiles says "
    "what each call did not fit."
)


def find(context: TimeContext) -> Findings:
    """At most one, with the programs whose compilation took longest."""
    facts = context.facts
    late = facts.number >= WARM_UP
    if not facts.rows:
        yield from _unmarked(context)
        return
    compiles, wall = facts.part("compile_ps").copy(), facts.part("wall_ps")
    if not compiles[late].any():
        return
    every = np.flatnonzero(late)
    first_calls = first_calls_ps(context.profile, facts, every)
    compiles[every] = np.minimum(compiles[every] + first_calls, wall[every])
    whole, lost = int(wall[late].sum()), int(compiles[late].sum())
    share = lost / whole if whole else 0.0
    if share < KIND.least:
        return
    rows = np.flatnonzero(late & (compiles >= KIND.least * wall) & (compiles > 0))
    steps = int(np.unique(facts.part("step_id")[rows]).size)
    later = int(np.unique(facts.part("step_id")[late]).size)
    order = rows[np.argsort(-compiles[rows], kind="stable")][:ROWS]
    programs = programs_compiled(context.profile, facts, every)
    first = programs[0] if programs else None
    where = None if first is None else first.function or first.caller
    regions = regions_compiled(context.profile, facts, every)
    if regions:
        changed, titles = regions[0].changed, _within([one.title for one in regions], where)
    else:
        changed = what_changed(context.profile, [one.name for one in programs[:1]])
        titles = [one.title for one in programs]
    yield KIND.finding(
        f"{steps} of {later} steps after the first {WARM_UP} compile "
        f"{'; '.join(titles) or 'a program'}: {share:.0%} of their time"
        f"{'; ' if changed else ''}{changed}",
        {
            "steps": facts.count,
            "compiling_steps": steps,
            "programs": titles,
            "changed": changed,
            **of_frame(where),
            "compile_ps": lost // facts.lanes,
            "share": share,
            "gain_ps": lost // facts.lanes,
            # The steps after the first are what the rest of the run is made of.
            "gain_share": share,
        },
        _REGIONS if regions else _PROGRAMS,
        tuple(
            {"step": facts.label(row), "wall_ps": int(wall[row]), "compile_ps": int(compiles[row])}
            for row in order.tolist()
        ),
    )


def _unmarked(context: TimeContext) -> Findings:
    """Where nothing marks steps: the function of the program that is compiled most, if many times.

    What libraries compile for each shape of a model's weights is no fault.
    """
    profile = context.profile
    trace = trace_of(profile)
    does = activity_of(profile)
    compiles = on_host(trace, lambda events: does[events] == Activity.COMPILE)
    if not compiles.size:
        return
    begin, end = union(trace.start[compiles], trace.end[compiles])
    lost, whole = int((end - begin).sum()), int(trace.end.max() - trace.start.min())
    if lost < KIND.least * whole:
        return
    every = np.zeros(0, np.int64)
    own = [one for one in programs_compiled(profile, context.facts, every) if one.function]
    where = own[0].function if own else None
    regions = regions_compiled(profile, context.facts, every)
    if regions:
        times, changed = regions[0].times, regions[0].changed
        titles = _within([one.name for one in regions], where)
    else:
        times, changed = own[0].times if own else 0, ""
        titles = [one.title for one in own]
    if times < FEWEST_STEPS:
        return
    if not regions:
        changed = what_changed(profile, [own[0].name])
    share = lost / whole
    # Each has to be compiled once.
    gain = share * (times - 1) / times
    yield KIND.finding(
        f"{titles[0]} is compiled {times} times, {share:.0%} of the profile's time goes to "
        f"compilation{'; ' if changed else ''}{changed}",
        {
            "steps": 0,
            "programs": titles,
            "changed": changed,
            **of_frame(where),
            "compile_ps": lost,
            "share": share,
            "gain_ps": round(gain * whole),
            "gain_share": gain,
        },
        _REGIONS if regions else _PROGRAMS,
    )


def _within(regions: list[str], where: Frame | None) -> list[str]:
    """These, the first with the function of the program around it."""
    if where is None:
        return regions
    return [f"{regions[0]}, called in {where.title}", *regions[1:]]
