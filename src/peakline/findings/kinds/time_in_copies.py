"""The device waits for copies from or to the host, or from another device."""

from peakline.findings.context import Findings, TimeContext
from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS, evidence_of, rows_by_step

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
    | columns("device_to_device_ps", "device_to_host_ps", "host_to_device_ps", "most"),
    saves="gain_share",
)

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
    """At most one, of steps with a device."""
    from peakline.timing.gaps import sum_of
    from peakline.timing.step_facts import PARTS

    facts, parts = context.facts, tuple(_ADVICE)
    share = facts.share(*parts)
    if not facts.has_device or share < KIND.least:
        return
    most = max(parts, key=facts.total)
    is_tpu = most != "device_to_device_ps" and all("TPU" in name for name in facts.devices)
    yield KIND.finding(
        f"{share:.0%} of the step time goes to copies, most of it to {PARTS[most]}",
        evidence_of(facts, share, facts.total(*parts), *parts) | {"most": most.removesuffix("_ps")},
        _OFFLOADED if is_tpu else _ADVICE[most],
        rows_by_step(facts, sum_of(facts, *parts), *parts),
    )
