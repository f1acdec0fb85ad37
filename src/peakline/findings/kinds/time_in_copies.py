"""The device waits for copies from or to the host, or from another device."""

from peakline.findings.context import Findings
from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import (
    COLUMNS,
    about_frame,
    evidence_of,
    gain_of,
    rows_by_step,
    where_of,
)
from peakline.findings.time_context import TimeContext
from peakline.timing.frame_work import function_around
from peakline.timing.launches.gaps import sum_of
from peakline.timing.launches.host_reads import transfers_of
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.steps.facts import PARTS
from peakline.trace.calls import Call
from peakline.trace.work_classes import Work

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
    | columns("device_to_device_ps", "device_to_host_ps", "host_to_device_ps", "most", "op")
    | columns(times_a_step="Times a step"),
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


def _blocking(context: TimeContext, ops: StepOps) -> Findings:
    """``tensor.to(device)`` of memory that is not pinned waits until it is copied."""
    chosen = (ops.work == Work.TRANSFER) & ~ops.is_inner
    lost = ops.alone_ps(chosen)
    share = lost / ops.wall_ps
    if share < KIND.least:
        return
    name, _, _, times = ops.by_op(chosen)[0]
    where, source = where_of(
        context, ops, chosen, function_around(context.profile, ops.event[chosen])
    )
    whole = "step time" if ops.has_steps else "profile's time"
    yield KIND.finding(
        f"{share:.0%} of the {whole} the host waits for copies between its memory and the device's:"
        f" {name}{where}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": name,
            "times_a_step": round(times, 1),
            **source,
            **gain_of(context.facts, share, lost),
        },
        "Make the tensor on the device (device=...), or copy it from pinned memory "
        "(pin_memory=True) with non_blocking=True, while the device works on the batch before; "
        "read results back once in many steps.",
    )


def _on_host(context: TimeContext) -> Findings:
    """Arrays of Python are copied into memory of XLA's; ops of PyTorch wait for copies."""
    ops = context.ops
    if ops is not None and ops.wall_ps:
        yield from _blocking(context, ops)
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
