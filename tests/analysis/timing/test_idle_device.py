"""Devices that are idle where a profile has no steps."""

from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

MS = 10**9
GPU = "/device:GPU:0"


@each_row(
    ("host", "says"),
    [("python", "had not launched its next work"), ("backend_compile", "compiled")],
)
def test_an_idle_device_is_told_of_without_steps(opened, host, says):
    space = SpaceBuilder()
    stream = space.plane(GPU).line("Stream #13(Compute)")
    python = space.host().line("python")
    python.event(host, 0, 19 * MS, {})
    for number in range(3):
        stats = {"correlation_id": number + 1}
        stream.event("gemm", 10 * number * MS, MS, stats)
        python.event("cuLaunchKernel", max(10 * number - 1, 0) * MS, 1000, stats)
    answer = opened(space).time()
    (found,) = answer.findings
    assert (answer.times, found.kind, found.severity) == (None, "host_bound", "warning")
    assert found.title == f"{GPU} waits for 86% of 21.000 ms while the host {says}"
    assert found.evidence["share"] == 18 / 21
    (row,) = found.rows
    assert (row["not_launched_ps"], row["being_launched_ps"]) == (16 * MS, 2 * MS)


@each_row(
    ("copy_ns", "says", "severity", "share"),
    [
        # A two hundredth, then a fiftieth, of what the other device works.
        (5_000, "/device:GPU:0 waits for 86% of 21.000 ms", "warning", 18 / 21),
        (20_000, "/device:GPU:1 waits for 100% of 30.020 ms", "warning", None),
    ],
)
def test_of_idle_devices_those_that_work_come_first(opened, copy_ns, says, severity, share):
    (found,) = idle_of(opened, {"/device:GPU:0": (10, MS), "/device:GPU:1": (15, copy_ns * 1000)})
    assert found.title.startswith(says)
    assert found.severity == severity
    assert share in {None, found.evidence["share"]}
    assert len(found.rows) == 2


def test_an_idle_device_that_does_none_of_the_work_is_a_note(opened):
    (found,) = idle_of(opened, {"/device:GPU:0": (1, MS), "/device:GPU:1": (10, MS // 200)})
    assert found.severity == "info"
    assert found.title == (
        "/device:GPU:1 waits for 100% of 20.005 ms while the host had not launched its next work "
        "(it does 0.5% of the work of the busiest device)"
    )
    assert (found.evidence["gain_ps"], found.evidence["gain_share"]) == (0, 0.0)


def idle_of(opened, devices):
    """What is found where each device has three pieces of work, launched as they begin: the ms from
    one to the next, and the ps that each takes.
    """
    space = SpaceBuilder()
    python = space.host().line("python")
    number = 0
    for device, (apart, length) in devices.items():
        stream = space.plane(device).line("Stream #13(Compute)")
        for place in range(3):
            number += 1
            stats = {"correlation_id": number}
            begin = max(apart * MS, length) * place
            stream.event("gemm", begin, length, stats)
            python.event("cuLaunchKernel", max(begin - 1, 0), 1000, stats)
    return opened(space).time().findings
