"""Sessions of many hosts, each an XSpace of about 164 kB with four TPU cores.

Every core runs the same module in each step: layers whose all-reduce is of the host's four cores,
then the gradients' all-reduces of all cores. Ops of a core run one after the other, so an op's
start is the end of the one before it, and all members of an all-reduce leave it together.
"""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from pathlib import Path

from tests.reference.xspace_builder import LineBuilder, PlaneBuilder, SpaceBuilder, Uint

CORES = 4
_LAYERS, _GRADIENTS = 12, 4
_FUSIONS = 5
_PROGRAM = 9_646_411_105_960_254_074
_US = 1_000_000
_START_NS = 1_795_906_347_081_044_120
_MODULE = f"jit_train_step({_PROGRAM})"


@dataclass(frozen=True)
class Op:
    """An instruction of the module: what it takes, and how many cores share it (0: none)."""

    text: str
    name: str
    category: str
    size: int
    microseconds: float
    shared_by: int


@dataclass(frozen=True)
class HostsTruth:
    """The slow host, if there is one, and the step times in ps: (step, begin, end) by host."""

    slow: int | None
    cause: str | None
    step_ps: int
    without_ps: int
    steps: dict[int, list[tuple[int, int, int]]]
    files: dict[int, str]


def module(cores: int) -> list[Op]:
    """The instructions of a training step on so many cores, in order."""
    result: list[Op] = []

    def fusion(place: str, microseconds: float) -> None:
        number = len(result)
        text = (
            f"%fusion.{number} = bf16[512,4096]{{1,0:T(8,128)(2,1)}} fusion(bf16[512,4096]"
            f"{{1,0:T(8,128)(2,1)}} %p.{number}), kind=kOutput, calls=%fused_computation.{number}"
        )
        name = f"fusion.{number}"
        result.append(Op(text, name, f"{place} fusion", 4 << 20, microseconds, 0))

    def reduce(elements: int, groups: str, shared_by: int, microseconds: float) -> None:
        number = len(result)
        shape = f"f32[{elements}]{{0:T(1024)}}"
        text = (
            f"%all-reduce.{number} = {shape} all-reduce({shape} %fusion.{number - 1}), "
            f"channel_id={number}, replica_groups={groups}, use_global_device_ids=true, "
            "to_apply=%add.clone"
        )
        name = f"all-reduce.{number}"
        result.append(Op(text, name, "all-reduce", 4 * elements, microseconds, shared_by))

    for _ in range(_LAYERS):
        for place in range(_FUSIONS):
            fusion("convolution" if place % 2 == 0 else "loop", 180 if place % 2 == 0 else 40)
        reduce(2_097_152, f"[{cores // CORES},{CORES}]<=[{cores}]", CORES, 60)
    for _ in range(_GRADIENTS):
        fusion("output", 250)
        reduce(25_165_824, f"[1,{cores}]<=[{cores}]", cores, 900)
    return result


def xspace_hosts(
    directory: Path,
    hosts: int,
    *,
    steps: int = 7,
    slow: int | None = None,
    cause: str = "slow kernels",
    seed: int = 0,
    session: str = "2026_11_29_12_00_00",
) -> HostsTruth:
    """Write a session of ``hosts`` XSpaces under a log directory.

    The ``slow`` host's fusions take 30 % longer (``slow kernels``), or its input comes 6 ms late
    (``slow input``). Profiles of hosts begin within 20 ms of each other.
    """
    folder = directory / "plugins" / "profile" / session
    folder.mkdir(parents=True, exist_ok=True)
    ops = module(hosts * CORES)
    runs = [_run(ops, hosts, steps, slow, cause, seed), _run(ops, hosts, steps, None, cause, seed)]
    times = [
        statistics.median_low(
            end - begin for host in range(hosts) for _, begin, end in _steps(run, host)
        )
        for run in runs
    ]
    truth = HostsTruth(slow, cause if slow is not None else None, *times, {}, {})
    for host in range(hosts):
        name = f"host-{host:04d}"
        path = folder / f"{name}.xplane.pb"
        path.write_bytes(_space(ops, runs[0], host, name, seed))
        truth.steps[host] = _steps(runs[0], host)
        truth.files[host] = str(path.relative_to(directory))
    return truth


Run = list[list[list[int]]]
"""By step and core, when its ops begin and, last, when the step's last op ends; ps."""


def _run(ops: list[Op], hosts: int, steps: int, slow: int | None, cause: str, seed: int) -> Run:
    """When each op of each core begins, on one clock."""
    cores = hosts * CORES
    free = [0] * cores
    result: Run = []
    for step in range(steps):
        draws = [random.Random(hash((seed, step, core))) for core in range(cores)]
        wire = random.Random(hash((seed, step, -1)))
        for core in range(cores):
            free[core] += int(draws[core].uniform(180, 220) * _US)
            if core // CORES == slow and cause == "slow input":
                free[core] += 6_000 * _US
        begins: list[list[int]] = [[] for _ in range(cores)]
        for op in ops:
            if not op.shared_by:
                for core in range(cores):
                    begins[core].append(free[core])
                    lasts = op.microseconds * draws[core].gauss(1.0, 0.02) * _US
                    is_slow = core // CORES == slow and cause == "slow kernels"
                    free[core] += int(lasts * (1.3 if is_slow else 1.0))
                continue
            for at in range(0, cores, op.shared_by):
                members = range(at, at + op.shared_by)
                end = max(free[core] for core in members)
                end += int(op.microseconds * wire.gauss(1.0, 0.03) * _US)
                for core in members:
                    begins[core].append(free[core])
                    free[core] = end + wire.randrange(2 * _US)
        for core in range(cores):
            begins[core].append(free[core])
        result.append(begins)
    return result


def _steps(run: Run, host: int) -> list[tuple[int, int, int]]:
    """From the end of the step before on, as the host sees its first core."""
    core = host * CORES
    ends = [0, *(step[core][-1] for step in run)]
    return [(step, ends[step], ends[step + 1]) for step in range(1, len(run))]


def _space(ops: list[Op], run: Run, host: int, name: str, seed: int) -> bytes:
    """The XSpace of a host: offsets count from when its profile began."""
    draw = random.Random(hash((seed, host, -2)))
    late = draw.randrange(20_000) * _US
    zero = 40_000 * _US - late
    builder = SpaceBuilder()
    builder.space.hostnames.append(name)
    for core in range(CORES):
        plane = builder.plane(
            f"/device:TPU:{core}",
            {"device_type_string": "TPU v5", "peak_teraflops_per_second": 459.0,
             "peak_hbm_bw_gigabytes_per_second": 2765.0},
        )  # fmt: skip
        _write_core(plane, ops, core, [step[host * CORES + core] for step in run], zero)
    threads = builder.host().line("python")
    before = zero
    for step, begins in enumerate(run):
        first, last = zero + begins[host * CORES][0], zero + begins[host * CORES][-1]
        threads.event("train", before, last - before, {"step_num": step, "_r": 1})
        threads.event("next(iterator)", before + 20 * _US, first - before - 60 * _US)
        threads.event("PjitFunction(train_step)", first - 40 * _US, 30 * _US)
        for core in range(CORES):
            at = first - (38 - 5 * core) * _US
            threads.event("DoEnqueueProgram", at, 4 * _US, {"_pt": 12, "_p": 100 * step + core})
        before = last
    builder.plane(
        "Task Environment",
        {"profile_start_time": Uint(_START_NS + late // 1000),
         "profile_stop_time": Uint(_START_NS + (before + 5_000 * _US) // 1000)},
    )  # fmt: skip
    return builder.space.SerializeToString()


def _write_core(
    plane: PlaneBuilder, ops: list[Op], core: int, steps: list[list[int]], zero: int
) -> None:
    marks, modules = plane.line("Steps"), plane.line("XLA Modules")
    line: LineBuilder = plane.line("XLA Ops")
    ids = []
    for op in ops:
        ids.append(plane.event_id(op.text))
        metadata = plane.message.event_metadata[ids[-1]]
        metadata.display_name = op.name
        plane.add_stats(
            metadata,
            {"hlo_category": op.category, "program_id": Uint(_PROGRAM), "bytes_accessed": op.size,
             "flops": 0 if op.shared_by else int(op.microseconds * 4e8)},
        )  # fmt: skip
    offset, lasts = plane.stat_id("device_offset_ps"), plane.stat_id("device_duration_ps")
    for number, begins in enumerate(steps):
        first, last = zero + begins[0], begins[-1] - begins[0]
        marks.event(str(number), first, last)
        launched = {"run_id": Uint(number + 1), "_ct": 12, "_c": 100 * number + core}
        modules.event(_MODULE, first, last, launched)
        for index, metadata_id in enumerate(ids):
            at, length = zero + begins[index], begins[index + 1] - begins[index]
            event = line.message.events.add(
                metadata_id=metadata_id, offset_ps=at, duration_ps=length
            )
            # The device's own clock is some ms off and counts in steps of 1.25 ns.
            event.stats.add(metadata_id=offset, uint64_value=(at - 43 * _US) // 1250 * 1250)
            event.stats.add(metadata_id=lasts, uint64_value=length // 1250 * 1250)
