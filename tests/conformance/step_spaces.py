"""Random XSpaces with steps: typed spans of hosts and GPUs, and cores of TPUs.

What the real software leaves open is avoided: work of one GPU that starts together differs in
length, roots start at times of their own.
"""

import random

from peakline.schema import XSpace
from reference.xspace_builder import PlaneBuilder, Ref, SpaceBuilder, Stats, Uint

HOST_NAMES = (
    "MatMul:MatMul", "work", "IteratorGetNext:IteratorGetNext", "IteratorGetNextOp::DoCompute",
    "x:InfeedEnqueueTuple", "MEMCPYHtoD", "MemcpyHToH", "EagerExecute", "FunctionRun", "train/x",
    "ExecutorState::Process", "Iterator::Root::Prefetch::TFRecord", "Iterator::Map", "testing",
    "Iterator::Root::Batch::TextLine", "half:Add", "dataset", "iteratorGetNext",
)  # fmt: skip
GPU_NAMES = (
    "MemcpyHToD", "MemcpyDToH", "memcpyDtoD", "MemcpyHToH", "ncclAllReduce", "NcclBroadcast",
    "volta_fp16_gemm", "half_kernel", "sgemm", "a/b:MatMul", "Memset",
)  # fmt: skip
CATEGORIES = (
    "infeed", "outfeed", "loop fusion", "all-reduce", "host send", "host recv-done",
    "megacore fusion", "sparsecorev0 infeed", "sparsecorev0 outfeed", "convolution",
    "host send-done", "host recv", "all-to-all", "send", "recv-done",
)  # fmt: skip


def gpu_space(seed: int, *, gpus: int, host_copies: bool = True) -> XSpace:
    """Steps of a host that launches work on ``gpus`` devices, and reads data for it.

    ``host_copies``: with copies by the host, which XProf gives a number of their own, at random,
    where it puts several hosts together.
    """
    rng = random.Random(seed)
    names = [name for name in HOST_NAMES if host_copies or not name.lower().startswith("memcpy")]
    builder = SpaceBuilder()
    steps = rng.randint(1, 9)
    period = 100_000
    launches: list[tuple[int, int]] = []
    host = builder.host()
    for thread in range(rng.randint(1, 3)):
        line = host.line("python" if thread == 0 else "pool")
        for step in range(steps):
            begin = step * period + 7 * step
            if thread == 0:
                root = rng.choice(["train", "my_step", "TraceContext", "FunctionRun"])
                length = rng.randint(20_000, 90_000)
                line.event(root, begin, length, {"_r": 1, "step_num": step, "_pt": 2, "_p": step})
            else:
                length = rng.randint(10_000, 80_000)
                line.event("region", begin + 11, length, {"_ct": 2, "_c": step})
            at = last = begin + 20
            for _ in range(rng.randint(0, 9)):
                name = rng.choice(names)
                at += rng.choice([0, 0, 10, rng.randint(0, 5000)])
                own = rng.choice([0, 0, 10, rng.randint(0, 20_000)])
                if "Infeed" in name:
                    # Nothing overlaps with it: it would be forgotten there.
                    at = last + 1
                last = max(last, at + own)
                if last >= begin + length:
                    break
                line.event(name, at, own, _host_stats(rng, launches, step))
                if "Infeed" in name:
                    at = last + 1
    for number in range(gpus):
        plane = builder.plane(f"/device:GPU:{number}")
        for _ in range(rng.randint(1, 3)):
            _stream(rng, plane, [own for own in launches if rng.random() < 0.7], period, number)
    return builder.space


def _host_stats(rng: random.Random, launches: list[tuple[int, int]], step: int) -> Stats:
    stats: list[tuple[str, object]] = []
    if rng.random() < 0.3:
        launches.append((len(launches) + 1, step))
        stats.append(("correlation_id", len(launches)))
    if rng.random() < 0.15:
        stage = rng.randrange(3)
        stats += [
            ("_ipl_stage_id", stage + 1001),
            ("_ipl_stage_name", rng.choice([f"stage {stage}", Ref(f"stage {stage}"), ""])),
            ("_ipl_stage_category", ["read", "preprocessing", "enqueue"][stage]),
        ]
    if rng.random() < 0.1:
        stats += [("_ct", 3), ("_c", rng.randrange(2))]
    if rng.random() < 0.1:
        stats += [("_pt", 3), ("_p", rng.randrange(2))]
    if rng.random() < 0.1:
        stats.append(("tf_op", rng.choice(["scope/op:Relu", "Iterator::Map", ""])))
    return stats


def _stream(
    rng: random.Random, plane: PlaneBuilder, launches: list[tuple[int, int]], period: int, gpu: int
) -> None:
    line = plane.line("Stream")
    number = len(plane.message.lines)
    at = 0
    for correlation, step in launches:
        at = max(at + rng.choice([0, 100]), step * period + rng.randint(0, period))
        length = 100 * rng.randint(0, 300) + 10 * number + gpu
        stats: list[tuple[str, object]] = []
        if rng.random() < 0.9:
            stats.append(("correlation_id", rng.choice([correlation, Uint(correlation)])))
        if rng.random() < 0.3:
            stats.append(("shape", rng.choice(["(half[1,2])", "(float[3])", "", Ref("half")])))
        line.event(rng.choice(GPU_NAMES), at, length, stats)
        at += length


def tpu_space(seed: int, *, cores: int, sparse_cores: int, host: str = "host") -> XSpace:
    """Steps of TensorCores in lock step, with ops in them, and SparseCores beside them."""
    rng = random.Random(seed)
    builder = SpaceBuilder()
    builder.space.hostnames.append(host)
    categories = rng.sample(CATEGORIES, rng.randint(1, 6))
    steps = rng.randint(1, 8)
    tells = rng.random() < 0.5
    for core in range(cores + sparse_cores):
        is_sparse = core >= cores
        number = core - cores if is_sparse else core
        name = f"/device:TPU:{number}" + (f" SparseCore {number}" if is_sparse else "")
        stats: dict[str, object] = {"device_type_string": "TPU v4"}
        if tells:
            stats["core_details"] = bytes([0x10, number])
        plane = builder.plane(name, stats)
        prefix = "Sparse Core " if is_sparse else ""
        marks = plane.line(prefix + "Steps")
        ops = plane.line("Sparse Core Ops" if is_sparse else "XLA Ops")
        modules = plane.line(prefix + "Modules" if is_sparse else "XLA Modules")
        for step in range(steps):
            at = step * 20_000_000_000 + rng.randrange(1000)
            lengths = [rng.randrange(1_000_000_000) for _ in categories]
            whole = sum(lengths) + rng.choice([0, rng.randrange(10**9)])
            marks.event(str(step), at, whole)
            modules.event("jit_step(1)", at, whole)
            for symbol, (category, length) in enumerate(zip(categories, lengths, strict=True)):
                op = _hlo_op(plane, f"{category}.{symbol}", category, symbol + 1)
                shared = {"all_reduce_unique_id": Uint(5 + symbol)} if "all-" in category else {}
                ops.event(op, at, length, shared)
                if category == "loop fusion" and length > 10:
                    ops.event(_hlo_op(plane, "inner", "convolution", 99), at + 1, length // 2)
                at += length
    if rng.random() < 0.4:
        _host_of_tpus(rng, builder.host(), steps)
    return builder.space


def _hlo_op(plane: PlaneBuilder, name: str, category: str, symbol: int) -> str:
    metadata = plane.message.event_metadata[plane.event_id(name)]
    if not metadata.stats:
        stats = {"program_id": Uint(7), "symbol_id": Uint(symbol), "hlo_category": category}
        plane.add_stats(metadata, stats)
    return name


def _host_of_tpus(rng: random.Random, host: PlaneBuilder, steps: int) -> None:
    line = host.line("python")
    for step in range(steps):
        at = step * 20_000_000_000
        line.event("train", at, 9_000_000_000, {"_r": 1, "step_num": step})
        line.event("IteratorGetNext:IteratorGetNext", at + 5, rng.randrange(10**9))
        other = rng.choice(["x:InfeedEnqueueTuple", "MatMul:MatMul"])
        line.event(other, at + 5 + 2 * 10**9, rng.randrange(10**9))
