"""Programs are compiled after the first two steps, and which they are."""

from peakline.findings.context import Findings, TimeContext
from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS, ROWS

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
    columns=COLUMNS | columns("compiling_steps", "programs", "compile_ps"),
    saves="gain_share",
)


def find(context: TimeContext) -> Findings:
    """At most one, with the programs whose compilation took longest."""
    import numpy as np

    from peakline.timing.step_facts import WARM_UP

    facts = context.facts
    late = facts.number >= WARM_UP
    compiles, wall = facts.part("compile_ps"), facts.part("wall_ps")
    whole, lost = int(wall[late].sum()), int(compiles[late].sum())
    share = lost / whole if whole else 0.0
    if share < KIND.least:
        return
    from peakline.timing.compiled import programs_compiled

    rows = np.flatnonzero(late & (compiles >= KIND.least * wall) & (compiles > 0))
    steps = int(np.unique(facts.part("step_id")[rows]).size)
    later = int(np.unique(facts.part("step_id")[late]).size)
    order = rows[np.argsort(-compiles[rows], kind="stable")][:ROWS]
    programs = programs_compiled(context.profile, facts, np.flatnonzero(late))
    yield KIND.finding(
        f"{steps} of {later} steps after the first {WARM_UP} compile "
        f"{', '.join(programs) or 'a program'}: {share:.0%} of their time",
        {
            "steps": facts.count,
            "compiling_steps": steps,
            "programs": programs,
            "compile_ps": lost // facts.lanes,
            "share": share,
            "gain_ps": lost // facts.lanes,
            "gain_share": lost / facts.wall_ps,
        },
        "Give every call the same shapes and types: pad batches to one length or to a few, drop "
        "the last short one, pass numbers that change as arrays instead of Python values, and set "
        "input_signature (tf.function) or keep static arguments constant (jax.jit).",
        tuple(
            {
                "step": facts.label(row),
                "wall_ps": int(wall[row]),
                "compile_ps": int(compiles[row]),
            }
            for row in order.tolist()
        ),
    )
