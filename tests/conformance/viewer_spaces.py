"""Random XSpaces for trace viewers: threads, flows, pools, counters, streams with HLO ops.

What the real software leaves open is avoided: events of one thread that start together differ in
length, but for instants; a correlation id is unsigned.
"""

import random

from peakline.schema import XSpace
from reference.xspace_builder import LineBuilder, Ref, SpaceBuilder, Uint

NAMES = (
    "work", "train", "MemoryAllocation", "ParallelMapProduce", "FunctionRun",
    "EnqueueRequestLocked", "ExecutorState::Process", "TransferH2DRequest",
    "ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion", "TraceContext",
    "a name that is longer than those which are kept as they are", '<&>"\\\n', "übung",
)  # fmt: skip


def viewer_space(seed: int) -> XSpace:
    """A host with several planes, counters, flows of all categories, and other devices."""
    rng = random.Random(seed)
    builder = SpaceBuilder()
    for name in rng.sample(["/host:CPU", "/host:CPU 2", "/device:CUSTOM:x", "/host:metadata"], 3):
        plane = builder.plane(name)
        shown = rng.random() < 0.4
        kinds = ["t", "python", "counters_x"] + ["_counters_"] * (not shown)
        for thread in range(rng.randint(0, 3)):
            line = plane.line(rng.choice(kinds), 1000 * thread)
            kinds = [kind for kind in kinds if kind != line.message.name or kind != "_counters_"]
            _thread(rng, line, counts=(line.message.name == "_counters_"))
        if shown:
            for metadata in plane.message.event_metadata.values():
                if rng.random() < 0.5:
                    metadata.display_name = rng.choice(["shown", "short:MatMul"])
    return builder.space


def grouped_space(seed: int) -> XSpace:
    """A host and GPUs that were grouped when they were written, in some cases all but one.

    Some planes have no event.
    """
    rng = random.Random(seed)
    space = gpu_viewer_space(seed)
    space.planes.add(name="/device:GPU:7")
    missed = rng.randrange(2 * len(space.planes))
    for place, plane in enumerate(space.planes):
        if place == missed:
            continue
        number = max(plane.stat_metadata, default=0) + 1
        plane.stat_metadata[number].id = number
        plane.stat_metadata[number].name = "group_id"
        for event in (event for line in plane.lines for event in line.events):
            if rng.random() < 0.5:
                event.stats.add(metadata_id=number, int64_value=rng.randrange(3))
    return space


def _thread(rng: random.Random, line: LineBuilder, *, counts: bool) -> None:
    at = 0
    for _ in range(rng.choice([0, 1, 30, 80])):
        at += rng.choice([0, 1, 10, 1000, rng.randint(0, 10**9)])
        if counts:
            value: object = rng.choice([rng.random(), Uint(rng.randint(0, 99))])
            at += 1
            line.event(rng.choice(["power", "clock"]), at, 0, {"value": value})
            continue
        length = 0 if rng.random() < 0.3 else rng.randint(1, 10 ** rng.randint(1, 10))
        stats: list[tuple[str, object]] = []
        if rng.random() < 0.2:
            stats += [("_pt", rng.randint(-1, 20)), ("_p", rng.randint(0, 9))]
        if rng.random() < 0.2:
            stats += [("_ct", rng.randint(-1, 20)), ("_c", rng.randint(0, 9))]
        if rng.random() < 0.1:
            stats.append(("correlation_id", Uint(rng.randint(0, 9))))
        if rng.random() < 0.1:
            value = (rng.randint(0, 17) << 58) | (rng.randint(1, 9) << 2) | rng.randint(1, 3)
            stats.append(("flow", Uint(value)))
        if rng.random() < 0.1:
            stats.append(("_a", 1))
        if rng.random() < 0.1:
            stats += [("request_id", rng.randint(0, 3)), ("queue_addr", rng.randint(0, 3))]
        if rng.random() < 0.1:
            stats += [("id", rng.randint(0, 3)), ("iter_num", rng.randint(0, 3))]
        if rng.random() < 0.05:
            stats += [("_r", 1), ("step_num", rng.randint(0, 99))]
        stats.append(("number", rng.choice([7, -(2**60), 0.1, "text", Ref("ref"), b"x"])))
        if length:
            # Those that start together differ in length.
            at += 1
        name = rng.choice(NAMES if line.plane.message.name.startswith("/host") else NAMES[:8])
        if name.startswith("ThreadpoolListener"):
            # A mark has no length, and a time of its own.
            length, at = 0, at + 1
        line.event(name, at, length, stats)
        at += name.startswith("ThreadpoolListener")


def gpu_viewer_space(seed: int) -> XSpace:
    """Streams of GPUs whose kernels name modules, HLO ops and framework ops, in steps or not."""
    rng = random.Random(seed)
    builder = SpaceBuilder()
    thread = builder.host().line("main")
    for step in range(rng.randint(0, 4)):
        thread.event("train", step * 10**7, 9 * 10**6, {"_r": 1, "step_num": step + 10})
        for k in range(5):
            stats = {"correlation_id": Uint(step * 5 + k), "device_id": rng.randint(0, 2)}
            name = rng.choice(["cuLaunch", "launch"])
            thread.event(name, step * 10**7 + 1000 * k + 1, 500, stats)
    for number in range(rng.randint(1, 2)):
        plane = builder.plane(f"/device:GPU:{number}")
        for stream in range(rng.randint(1, 3)):
            line = plane.line(f"Stream #{stream}{rng.choice(['(Compute)', '(MemcpyH2D)'])}")
            line.message.id = 13 + 3 * stream
            _stream(rng, line, 4 * rng.randint(1, 9) + stream)
    return builder.space


def _stream(rng: random.Random, line: LineBuilder, count: int) -> None:
    at = 0
    for _ in range(count):
        at += rng.randint(1, 10**6)
        length = rng.randint(1, 10**6)
        stats: list[tuple[str, object]] = []
        if rng.random() < 0.8:
            stats.append(("kernel_details", "regs:1"))
        if rng.random() < 0.5:
            stats.append(("correlation_id", Uint(rng.randint(0, 20))))
        if rng.random() < 0.6:
            stats.append(("hlo_module", rng.choice(["jit_f", "jit_g"])))
            if rng.random() < 0.6:
                stats.append(("program_id", rng.randint(1, 3)))
            if rng.random() < 0.7:
                stats.append(("hlo_op", rng.choice(["fusion.1", "while.1::dot.2", "call::dot.2"])))
        if rng.random() < 0.6:
            op = rng.choice(["a/b/c:MatMul", "a/b/d:Add", "jit(f)/dot_general:", "x:Y", "plain"])
            stats.append(("tf_op", op))
        line.event(rng.choice(["kernel", "gemm"]), at, length, stats)
        if rng.random() < 0.7:
            at += length


def crowded_space(seed: int, events: int = 520_000) -> XSpace:
    """So many events that a viewer leaves some out: short ones in long ones, with flows."""
    rng = random.Random(seed)
    builder = SpaceBuilder()
    plane = builder.host()
    lines = [plane.line(f"thread {number}") for number in range(3)]
    at = [0, 5, 9]
    for number in range(events):
        thread = rng.randrange(3)
        at[thread] += int(rng.expovariate(1 / 2e5)) + 1
        length = int(rng.lognormvariate(10, 3))
        stats: dict[str, object] = {}
        if number % 9 == 0:
            stats = {"_pt": 2, "_p": number}
        elif number % 9 == 4:
            stats = {"_ct": 2, "_c": number - 4}
        lines[thread].event(rng.choice(("x", "y", "z")), at[thread], length, stats)
    return builder.space
