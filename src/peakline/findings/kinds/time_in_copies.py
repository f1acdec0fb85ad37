"""The device waits for copies from or to the host, or from another device."""

from peakline.findings.context import Findings
from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, about_frame, evidence_of, gain_of, rows_by_step
from peakline.findings.time_context import TimeContext
from peakline.timing.launches.gaps import sum_of
from peakline.timing.launches.host_reads import transfers_of
from peakline.timing.steps.facts import PARTS
from peakline.trace.calls import Call

# Copies while the device does not compute: XProf's bounds for output are 5 % and 20 %.
KIND = Kind(
    "time_in_copies",
    __doc__,
    about="time",
    phrase="the device waits for copies",
    severity="warning",
    least=0.05,
    much=0.20,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("device_to_device_ps", "device_to_host_ps", "host_to_device_ps", "most"),
    saves="gain_share",
)

HOST_LEAST, HOST_MUCH = 0.10, 0.40
"""On a CPU every batch is copied once, which of a small model is a quarter of the time."""

_ADVICE = {
    "device_to_device_ps": "Keep what is used together on one device, and place or shard tensors "
    "so that they need not move in every step.",
    "device_to_host_ps": "Read results back less often, and only the numbers that are needed: "
    "every read waits for the device.",
    "host_to_device_ps": "Copy the next batch while the device computes on this one "
    "(prefetch_to_device, pinned memory, non_blocking=True), or send it in a smaller type and "
    "convert it on the device.",
}
_OFFLOADED = (
    "Programs of a TPU copy from and to the host what they offloaded to its memory: keep more "
    "weights and activations on the device, recompute them, or begin the copies earlier."
)


def find(context: TimeContext) -> Findings:
    """At most one: of steps with a device, or of XLA on a CPU."""
    if not context.facts.has_device:
        yield from _on_host(context)
        return
    facts, parts = context.facts, tuple(_ADVICE)
    share = facts.share(*parts)
    if share < KIND.least:
        return
    most = max(parts, key=facts.total)
    is_tpu = most != "device_to_device_ps" and all("TPU" in name for name in facts.devices)
    yield KIND.finding(
        f"{share:.0%} of the step time goes to copies, most of it to {PARTS[most]}",
        evidence_of(facts, share, facts.total(*parts), *parts) | {"most": most.removesuffix("_ps")},
        _OFFLOADED if is_tpu else _ADVICE[most],
        rows_by_step(facts, sum_of(facts, *parts), *parts),
    )


def _on_host(context: TimeContext) -> Findings:
    """Arrays of Python are copied into memory of XLA's."""
    ops = context.ops
    result = None if ops is None or ops.side != "host" else transfers_of(ops)
    if ops is None or result is None or not ops.wall_ps:
        return
    share = result.ps / ops.wall_ps
    if share < HOST_LEAST:
        return
    idle = context.idle
    calls = [] if idle is None else idle.by_function(idle.call == Call.TRANSFER)
    work = calls[0] if calls else None
    where = "" if work is None else f", called in {work.frame.title} by {work.callee}"
    whole = "step time" if ops.has_steps else "profile's time"
    yield KIND.finding(
        f"{share:.0%} of the {whole} arrays of Python are copied for compiled programs "
        f"({result.name}){where}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "most": result.name,
            **({} if work is None else about_frame(work)),
            **gain_of(context.facts, share, result.ps),
        },
        "Copy what does not change once, before the loop, and send only what a step uses: index on "
        "the host, or keep the data on the device and send indices.",
        severity="warning" if share >= HOST_MUCH else "info",
    )
