"""Calls that only a first use makes take much of the recording, which began with the program."""

from peakline.findings.context import Findings
from peakline.findings.kind import Kind, columns
from peakline.findings.steps import ROWS
from peakline.findings.time_context import TimeContext
from peakline.safe_text import cut_middle
from peakline.text import counted, time_text
from peakline.trace.events import trace_of
from peakline.trace.intervals import total

# It is no fault of the program: what it hides is what the program does afterwards.
KIND = Kind(
    "first_use",
    __doc__,
    about="time",
    phrase="first uses take much of the recording",
    severity="info",
    least=0.10,
    section="steps",
    columns=columns("share", "span_ps", "first_use_ps", "calls", "call", "at_ps", "took_ps")
    | columns("others_ps"),
)

_NAME = 60


def find(context: TimeContext) -> Findings:
    """At most one, of the whole recording."""
    trace, uses = trace_of(context.profile), context.first_uses
    begin, end = trace.span()
    lost = total(uses.intervals)
    if not lost or lost < KIND.least * (end - begin):
        return
    order = (trace.start - trace.end)[uses.event].argsort(kind="stable")
    rows = tuple(
        {
            "call": trace.name[event] or "",
            "at_ps": int(trace.start[event]),
            "took_ps": int(trace.end[event] - trace.start[event]),
            "others_ps": int(usual) if usual >= 0 else None,
        }
        for event, usual in zip(
            uses.event[order][:ROWS].tolist(), uses.usual_ps[order][:ROWS].tolist(), strict=True
        )
    )
    longest = rows[0]
    name, took = cut_middle(str(longest["call"]), _NAME), time_text(int(str(longest["took_ps"])))
    yield KIND.finding(
        f"{lost / (end - begin):.0%} of {time_text(end - begin)} are first uses: "
        f"{counted(len(uses.event), 'call')}, the longest {name} of {took}",
        {
            "share": lost / (end - begin),
            "span_ps": end - begin,
            "first_use_ps": lost,
            "calls": len(uses.event),
            "call": longest["call"],
        },
        "A runtime loads libraries and kernels when they are first used, and no loop pays for it "
        "again: record after a warm-up (run some iterations before the profile begins; a schedule "
        "with wait= and warmup= of torch.profiler) to see what the program takes.",
        rows,
    )
