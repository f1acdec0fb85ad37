"""Random XSpaces for differential tests: small, dense in coincidences, everything mixed.

What the real software leaves open is avoided: no two roots of one level and no two executor
events start together, and memory events of equal time occur only where there are few.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from peakline.schema import XSpace
from reference.xspace_builder import LineBuilder, PlaneBuilder, Ref, SpaceBuilder, StatValue, Uint

TICK = 1000
"""Grid of ordinary times, in ps; what must be unique gets a remainder of its own."""

STABLE_TIES = 16
"""As many snapshots are sorted stably by the real software; more of equal time are left open."""

PLAIN = ["work", "train", "MatMul:MatMul", "bar:add", "foo_1:", "Iterator::Map", "a/b:_Send"]
STEPS = ["FunctionRun", "SessionRun", "RunGraph", "TraceContext", "EagerExecute"]
EXECUTION = [
    "ExecutorState::Process",
    "ExecutorState::Process",
    "IteratorGetNextOp::DoCompute",
    "IteratorGetNextAsOptionalOp::DoCompute",
]
BATCHING = ["ProcessBatch", "OrbaxServing::ProcessBatch", "BatchingSessionRun"]
LAUNCHES = ["KernelLaunch", "KernelExecute", "cudaLaunchKernel", "UnknownHostEventType"]
POOL = ["ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion"]
TPU_HOST = [
    "EnqueueRequestLocked", "RunProgramRequest", "TransferH2DRequest", "DoEnqueueProgram",
    "DoEnqueueContinuationProgram", "CompleteCallbacks", "TpuExecuteOp",
]  # fmt: skip
MEMORY = ["MemoryAllocation", "MemoryDeallocation"]
RARE = ["InstantiatedCapturedFunction::Run", "InstantiatedCapturedFunction::RunAsync"]
LOOPS = ["WhileOp-StartBody", "ForOp"]
EXTREMES = [2**63 - 1, -(2**63), 2**62, -1, 2**32 + 1, 2**40]


@dataclass(frozen=True)
class Profile:
    """Relative weights of event families, and which planes there are."""

    families: dict[tuple[str, ...], float]
    gpu: float = 0.0
    tpu: float = 0.0
    oddity: float = 0.05
    root_share: float = 0.08
    extra_planes: float = 0.3


_HOST = {
    tuple(PLAIN): 4.0, tuple(STEPS): 3.0, tuple(EXECUTION): 1.0, tuple(BATCHING): 0.4,
    tuple(LAUNCHES): 1.0, tuple(POOL): 0.5, tuple(MEMORY): 3.0, tuple(RARE): 0.05,
}  # fmt: skip
PROFILES = {
    "memory": Profile({tuple(MEMORY): 10.0, tuple(PLAIN): 2.0, tuple(STEPS): 2.0}),
    "host": Profile(_HOST),
    "pool": Profile({tuple(POOL): 3.0, tuple(PLAIN): 2.0, tuple(STEPS): 2.0, tuple(MEMORY): 2.0}),
    "loops": Profile(
        {tuple(EXECUTION): 4.0, tuple(PLAIN): 2.0, tuple(MEMORY): 2.0}, root_share=0.2
    ),
    "gpu": Profile({**_HOST, tuple(LAUNCHES): 4.0}, gpu=1.0),
    "tpu": Profile({**_HOST, tuple(TPU_HOST): 5.0}, tpu=1.0),
    "odd": Profile({**_HOST, tuple(TPU_HOST): 1.0, tuple(LOOPS): 0.02}, 0.3, 0.3, 0.3),
}


def random_xspace(seed: int, profile: str = "mixed") -> XSpace:
    """The XSpace that belongs to ``seed``; ``profile`` is a key of `PROFILES`, or ``mixed``.

    ``mixed`` takes the profile from the seed.
    """
    rng = random.Random(f"{seed} {profile}")
    chosen = rng.choice(sorted(PROFILES)) if profile == "mixed" else profile
    return _Generator(rng, PROFILES[chosen]).space()


@dataclass
class _Generator:
    rng: random.Random
    profile: Profile
    builder: SpaceBuilder = field(default_factory=SpaceBuilder)
    unique: int = 0
    memory_events: int = 0

    def __post_init__(self) -> None:
        self.tied = self.chance(0.3)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def space(self) -> XSpace:
        planes: list[Callable[[], None]] = [self.host_plane]
        if self.chance(self.profile.gpu):
            planes += [partial(self.gpu_plane, n) for n in range(self.rng.randint(1, 2))]
        if self.chance(self.profile.tpu):
            planes += [partial(self.tpu_plane, n) for n in range(self.rng.randint(1, 3))]
        if self.chance(self.profile.extra_planes):
            planes.append(self.other_plane)
        if self.chance(0.3):
            self.rng.shuffle(planes)
        for plane in planes:
            plane()
        return self.builder.space

    # Planes

    def host_plane(self) -> None:
        stats = {"process_id": self.rng.choice([7, 8])} if self.chance(0.3) else {}
        plane = self.builder.plane("/host:CPU", stats)
        for _ in range(self.rng.randint(1, 4)):
            self.host_line(plane)
        if self.chance(0.03):
            plane.stat_id("group_id")

    def other_plane(self) -> None:
        names = ["/host:CPU", "/host:python-tracer", "/host:CUPTI", "/host:TPU-runtime", "#Chip0"]
        names += ["Task Environment", "/host:CPU [12]", "/device:CUSTOM:x", "Syscalls"]
        plane = self.builder.plane(
            self.rng.choice(names), {"process_id": 7} if self.chance(0.3) else {}
        )
        self.host_line(plane)

    def gpu_plane(self, number: int) -> None:
        plane = self.builder.plane(f"/device:GPU:{number}")
        for _ in range(self.rng.randint(1, 3)):
            line = plane.line("Stream", self.timestamp())
            for offset, duration in self.times(12):
                stats = [self.context_stat()] if self.chance(0.1) else []
                if self.chance(0.8):
                    stats.append(("correlation_id", self.small(6)))
                line.event(
                    self.rng.choice(["kernel", "Memset", "MatMul:MatMul"]), offset, duration, stats
                )
        if self.chance(0.1):
            plane.stat_id("group_id")

    def tpu_plane(self, number: int) -> None:
        core = self.rng.choice(["", "", "", " SparseCore 0", " Other"])
        plane = self.builder.plane(f"/device:TPU:{number % 2}{core}")
        prefix = "Sparse Core " if "Sparse" in core else ""
        names = [prefix + "Steps" if self.chance(0.7) else "XLA Ops", "XLA Ops", "_counters_"]
        names.append("Sparse Core Modules" if prefix and self.chance(0.7) else "XLA Modules")
        if self.chance(0.3):
            self.rng.shuffle(names)
        for name in names:
            line = plane.line(name, self.timestamp())
            for offset, duration in self.times(8):
                stats: list[tuple[str, StatValue]] = []
                if name.endswith("Modules") and self.chance(0.8):
                    stats += self.launch_stats(number % 2)
                if self.chance(0.1):
                    stats += self.context()
                if self.chance(0.02):
                    stats.append(("group_id", self.rng.randint(0, 20)))
                line.event(
                    self.rng.choice(["0", "1", "jit_step(1)", "fusion"]), offset, duration, stats
                )

    # Host events

    def host_line(self, plane: PlaneBuilder) -> None:
        timestamp = self.timestamp()
        line = plane.line(self.rng.choice(["python", "tf_pool", "", "Steps"]), timestamp)
        families = list(self.profile.families)
        weights = [self.profile.families[family] for family in families]
        for offset, duration in self.times(25):
            (family,) = self.rng.choices(families, weights)
            self.host_event(line, self.rng.choice(family), offset, duration)

    def host_event(self, line: LineBuilder, name: str, offset: int, duration: int) -> None:
        stats: list[tuple[str, StatValue]] = []
        if name in MEMORY and self.tied and self.memory_events == STABLE_TIES:
            name = "work"
        if name in MEMORY:
            self.memory_events += 1
            stats += self.memory_stats()
            duration = 0 if self.chance(0.8) else duration
        if name in EXECUTION or name in RARE or name == "TpuExecuteOp" or self.chance(0.08):
            stats += [("id", self.small(4))] if self.chance(0.9) else []
            stats += [("iter_num", self.small(3, 0.6))] if self.chance(0.7) else []
        if name in LAUNCHES or self.chance(0.03):
            stats.append(("correlation_id", self.small(6)))
        if name in TPU_HOST:
            stats += self.launch_stats(self.rng.randint(0, 1), with_device=True)
            stats += [("request_id", self.small(3)), ("queue_addr", self.small(2))]
        if self.chance(0.35) or name in POOL:
            stats += self.context()
        if self.chance(self.profile.root_share) or (name == "FunctionRun" and self.chance(0.5)):
            stats.append(("_r", self.small(3)))
        if self.chance(0.05):
            stats.append(("_a", self.small(2)))
        if self.chance(0.1):
            stats.append((self.rng.choice(["step_num", "iter_num"]), self.small(1000)))
        if self.chance(0.05):
            stats.append(("graph_type", self.rng.choice([Ref("eager"), "graph", 3])))
        if self.chance(0.02):
            stats.append(("group_id", self.small(50)))
        if self.chance(0.1):
            stats.append(("unknown stat", self.rng.choice([1, "x", b"y", 0.5, None])))
        is_root = name == "TraceContext" or name in BATCHING or any(s[0] == "_r" for s in stats)
        untied = name in MEMORY and not self.tied
        if is_root or untied or name == "ExecutorState::Process":
            self.unique += 1
            offset += self.unique
            duration = max(duration - self.unique, 0) if duration > 0 else duration
        missing = 9999 if self.chance(0.1 * self.profile.oddity) else None
        if name not in MEMORY and not is_root and self.chance(0.1 * self.profile.oddity):
            line.event(name, duration_ps=duration, stats=stats, num_occurrences=3)
        else:
            line.event(name, offset, duration, stats, metadata_id=missing)

    # Values

    def timestamp(self) -> int:
        """A line's timestamp in ns: mostly one for all, as files have it."""
        if self.chance(0.1 * self.profile.oddity):
            return self.rng.choice([-1, -(2**40), 1_763_000_000_000_000_000, 2**54, 2**63 - 1])
        return self.rng.choice([0, 0, 3, 3, 3, 11])

    def times(self, limit: int) -> list[tuple[int, int]]:
        """Offsets and durations, mostly sorted as the runtime writes them."""
        spans = []
        for _ in range(self.rng.randint(0, limit)):
            duration = self.rng.choice([0, 0, 1, 2, 3, 5, 8, 20, 40])
            span = (self.rng.randint(0, 60) * TICK, duration * TICK)
            if self.chance(0.05 * self.profile.oddity):
                far = (self.rng.choice([-5000, -(2**62), 2**62, 2**63 - 10**6]), span[1])
                long = (span[0], self.rng.choice([-5000, -1, -(2**63), 2**62, 2**63 - 1]))
                span = self.rng.choice([far, long])
            spans.append(span)
        if self.chance(0.85):
            spans.sort(key=lambda span: (span[0], -span[1]))
        return spans

    def small(self, limit: int, zero: float = 0.0) -> StatValue:
        """A small integer, now and then of an unusual kind."""
        value = 0 if self.chance(zero) else self.rng.randrange(limit)
        if not self.chance(self.profile.oddity):
            return value
        return self.rng.choice(
            [Uint(value), float(value), str(value), Ref(str(value)), -value, None]
        )

    def context_stat(self) -> tuple[str, StatValue]:
        return ("_c", self.small(5))

    def context(self) -> list[tuple[str, StatValue]]:
        """Producer or consumer stats, or both, with few enough ids to meet."""
        stats: list[tuple[str, StatValue]] = []
        for side in ("p", "c"):
            if self.chance(0.6):
                stats.append((f"_{side}t", 12 if self.chance(0.03) else self.small(3)))
                stats.append((f"_{side}", self.small(5)))
        if self.chance(0.15):
            stats.append(("_pid", self.rng.choice([7, 8])))
        self.rng.shuffle(stats)
        return stats if self.chance(0.9) else stats[1:]

    def launch_stats(self, device: int, with_device: bool = False) -> list[tuple[str, StatValue]]:
        stats: list[tuple[str, StatValue]] = [
            ("queue_id", self.small(2)),
            ("run_id", self.small(3)),
        ]
        if with_device:
            stats.append(("device_ordinal", device))
        if self.chance(0.2):
            stats.append(("core_type", self.small(2)))
        return stats

    def bytes_value(self) -> StatValue:
        if self.chance(0.1 * self.profile.oddity):
            return self.rng.choice(EXTREMES)
        if self.chance(0.3 * self.profile.oddity):
            return self.rng.choice([Uint(64), 64.0, "64", -64, None])
        return self.rng.choice([0, 64, 64, 128, 256, self.rng.randint(0, 4096)])

    def memory_stats(self) -> list[tuple[str, StatValue]]:
        rng = self.rng
        stats: list[tuple[str, StatValue]] = [
            ("allocator_name", rng.choice([Ref("GPU_0_bfc"), "GPU_0_bfc", Ref("cpu"), "cpu"])),
            ("bytes_reserved", rng.choice([0, 0, 0, 100])),
            ("bytes_allocated", self.bytes_value()),
            ("bytes_available", self.bytes_value()),
            ("fragmentation", rng.choice([0.25, 0.1, 0, 1, float("nan")])),
            ("peak_bytes_in_use", self.bytes_value()),
            ("requested_bytes", self.bytes_value()),
            ("allocation_bytes", self.bytes_value()),
            ("addr", rng.choice([1, 2, 3, 4, 2**40, Uint(2**63 + 5)])),
            ("tf_op", rng.choice(["", "a/b", Ref("a/b"), Ref("mul"), 12, "µ"])),
            ("id", rng.choice([0, 1, -7])),
            ("region_type", rng.choice(["", "output", Ref("temp"), Ref("persist")])),
            ("data_type", rng.choice([0, 1, 1, 9, 31, 101, 999, Uint(1), "1"])),
            ("shape", rng.choice(["", Ref("[3, 3]"), "[3, 3]", Ref("[]")])),
        ]
        if self.chance(0.1):
            stats.append((rng.choice(["device_ordinal", "index_on_host"]), self.small(2)))
        if self.chance(0.3):
            rng.shuffle(stats)
        return [stat for stat in stats if not self.chance(0.05)]
