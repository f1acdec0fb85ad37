"""Findings of time on jobs on GPUs made by hand: a fault and its healthy twin."""

from tests.analysis.timing.gpu_jobs import COLLECTIVES, COPIES, Job, Work, healthy, write
from tests.each_row import each_row

import peakline

MS = 10**9
GPU = "/device:GPU:0"


def launched_one_by_one(_step, _device):
    return [Work("tiny", 100 + 40 * n, 5, launched=90 + 40 * n) for n in range(200)]


def exposed(_step, _device):
    work = [Work(f"gemm_{n}", 100 + 1500 * n, 1490, launched=50 + 5 * n) for n in range(4)]
    return [
        *work,
        Work("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 6100, 3800,
             COLLECTIVES, 120),
    ]  # fmt: skip


def hidden(_step, _device):
    work = healthy(0, 0)
    return [
        *work,
        Work("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 4000, 3800,
             COLLECTIVES, 120),
    ]  # fmt: skip


def copying(_step, _device):
    return [
        Work("MemcpyH2D", 100, 3000, COPIES, 40),
        *[Work(f"gemm_{n}", 3100 + 1700 * n, 1690, launched=50 + 5 * n) for n in range(4)],
    ]


def copying_ahead(_step, _device):
    return [*healthy(0, 0), Work("MemcpyH2D", 200, 3000, COPIES, 100)]


def lagging(_step, device):
    busy = 8.0 if device != 1 else 9.7
    work = [Work(f"gemm_{n}", 100 + busy * 250 * n, busy * 250 - 5, launched=50 + 5 * n)
            for n in range(4)]  # fmt: skip
    done = 100 + busy * 1000
    waits = 9900 - done
    reduce = Work("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", done, waits,
                  COLLECTIVES, 80)  # fmt: skip
    return [*work, reduce]


def even(step, _device):
    return lagging(step, 1)


def gapped(_step, _device):
    return [Work(f"gemm_{n}", 100 + 1900 * n, 1890, launched=50 + 5 * n) for n in range(4)]


def late(_step, _device):
    """What a step that begins with 3 ms on the host leaves of healthy work."""
    return [Work(f"gemm_{n}", 3100 + 1700 * n, 1690, launched=3050 + 5 * n) for n in range(4)]


def reading(_step):
    return [("IteratorGetNext", 10, 3000)]


def reading_before(_step):
    return [("IteratorGetNext", -2200, 2100)]


def counting(_step):
    return [("update_metrics", 10, 3000)]


def compiling(step):
    return [("backend_compile_and_load", 10, 3000)] if step > 3 else []


def late_when_compiled(step, device):
    return (late if step > 3 else healthy)(step, device)


JOBS = {
    "input_bound": (Job(late, reading, marker=3_200), Job(healthy)),
    "input_bound between the steps": (
        Job(gapped, reading_before, marker=7_700),
        Job(healthy, reading_before),
    ),
    "host_bound": (Job(late, counting, marker=3_200), Job(healthy)),
    "recompilation": (Job(late_when_compiled, compiling, marker=3_200), Job(healthy)),
    "launch_bound": (Job(launched_one_by_one, period=8_300, marker=8_200), Job(healthy)),
    "communication_not_overlapped": (Job(exposed, marker=200), Job(hidden, marker=200)),
    "time_in_copies": (Job(copying, marker=200), Job(copying_ahead, marker=200)),
    "straggler": (Job(lagging, devices=4, marker=200), Job(even, devices=4, marker=200)),
    "idle_between_steps": (Job(gapped, marker=7700), Job(healthy)),
}


def found_in(job, tmp_path):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(write(job))
    with peakline.open(path) as profile:
        return profile.time().findings


def test_a_straggler_is_named_and_the_waiting_for_it_is_not_told_twice(tmp_path):
    (finding,) = found_in(JOBS["straggler"][0], tmp_path)
    assert finding.severity == "warning"
    assert (finding.evidence["device"], finding.evidence["often"]) == ("/device:GPU:1", 1.0)
    assert finding.evidence["gain_ps"] == 12 * 1700 * 10**6
    assert finding.rows[0] == {
        "device": "/device:GPU:1",
        "work_ps": 12 * 4 * 2420 * 10**6,
        "communication_ps": 12 * 100 * 10**6,
    }


def test_a_straggler_among_devices_that_do_not_communicate(tmp_path):
    def work(_step, device):
        return [Work("gemm", 100, 9_700 if device == 1 else 6_000, launched=50)]

    (finding,) = found_in(Job(work, devices=3), tmp_path)
    assert (finding.kind, finding.evidence["evidence"]) == ("straggler", "finish")


def test_stages_of_a_pipeline_do_not_straggle(tmp_path):
    """All compute as long; the last has nobody to send to."""

    def work(_step, device):
        send = Work("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)", 8_000, 1_900 - 600 * device,
                    COLLECTIVES, 90)  # fmt: skip
        return [Work("gemm", 100, 7_890, launched=50), send]

    found = found_in(Job(work, devices=3), tmp_path)
    assert [finding.kind for finding in found] == ["communication_not_overlapped"]


@each_row("kind", JOBS)
def test_a_faulty_job_and_its_healthy_twin(kind, tmp_path):
    found = [[one.kind for one in found_in(job, tmp_path)] for job in JOBS[kind]]
    assert found == [[kind.partition(" ")[0]], []]


# Programs, recorded.


def test_what_takes_longer_in_a_slow_step(tmp_path):
    def work(step, _device):
        extra = [Work("evaluate", 9_900, 40_000, launched=90)] if step % 4 == 3 else []
        return [*healthy(0, 0), *extra]

    found = found_in(Job(work, steps=16, period=50_000), tmp_path)
    finding = next(one for one in found if one.kind == "step_variation")
    assert (finding.evidence["longest"], finding.evidence["period_steps"]) == ("evaluate", 4)
    assert finding.evidence["longest_extra_ps"] == 40 * MS
    assert "most of it evaluate, which runs 1.0 times in a slow step, 0.0 in" in finding.suggestion
