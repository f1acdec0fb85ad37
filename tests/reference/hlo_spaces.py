"""XSpaces whose devices ran instructions of compiled programs, in odd shapes.

TPUs with loops that hold their bodies, names that stand for duplicates, SparseCores, other clock
rates, missing stats; GPUs of several makers, with ops without a program, two programs, several
streams, kernels of one op in a row.
"""

import random
from collections.abc import Mapping

from peakline.schema import XSpace
from reference.op_spaces import PROGRAM, add_program
from reference.xspace_builder import LineBuilder, PlaneBuilder, Ref, SpaceBuilder, StatValue, Uint

CATEGORIES = (
    "loop fusion", "convolution fusion", "custom-call", "while", "conditional", "call",
    "megacore fusion", "infeed", "outfeed", "sparsecorev0 infeed", "copy-start", "copy-done",
    "all-reduce", "data formatting", "IDLE", "",
)  # fmt: skip
PROVENANCES = (
    "", "jit(f)/add:add", "jit(f)/jit(main)/while/body/dot_general:", "a/b/MatMul:MatMul", "plain",
    "/x//y:z:w", "jit(f)/rematted_computation/mul:mul", "x:XlaSendToHost",
)  # fmt: skip
TEXTS = (
    "%{} = f32[8]{{0}} add(f32[8]{{0}} %a, f32[8]{{0}} %b)",
    "%{} = token[] send-done(token[] %a), channel_id=1, is_host_transfer=true",
    "%{}.remat = f32[8]{{0}} negate(f32[8]{{0}} %a)",
    "{}",
)
CAPABILITIES = ((9, 0), (8, 0), (8, 6), (8, 9), (7, 5), (7, 0), (6, 1), (5, 2), (3, 5), (2, 0),
                (10, 0), (12, 0), (1, 0))  # fmt: skip
LONG = 10_000
"""Sums that XProf cuts to whole ps are then exact enough."""
VENDORS = ("Nvidia", "Nvidia", "AMD", "Other", "")


def hlo_space(seed: int, *, kind: str = "", host: str = "") -> XSpace:
    """The XSpace that belongs to ``seed``: with GPUs or TPUs, as ``kind`` says, or either."""
    rng = random.Random(f"hlo {seed}")
    builder = SpaceBuilder()
    if host:
        builder.space.hostnames.append(host)
    kind = kind or rng.choice(["gpu", "tpu"])
    for number in range(rng.randint(1, 3)):
        if kind == "gpu":
            _gpu(rng, builder, number)
        else:
            _tpu(rng, builder, number, seed)
    if kind == "tpu" and rng.random() < 0.6:
        _sparse_core(rng, builder, seed)
    plane = add_program(builder, PROGRAM)
    if rng.random() < 0.5:
        add_program(builder, PROGRAM + 1, "other/", plane)
    return builder.space


def every_instruction(programs: Mapping[int, bytes]) -> XSpace:
    """A GPU that ran every instruction of these programs (HloProto by id) once."""
    from peakline.schema import HloProto

    builder = SpaceBuilder()
    plane = builder.plane("/host:metadata")
    line = builder.plane("/device:GPU:0", {"device_vendor": "Nvidia"}).line("Stream")
    at = 0
    for number, data in programs.items():
        metadata = plane.message.event_metadata[number % 2**31]
        metadata.id, metadata.name = number % 2**31, f"main({number})"
        plane.add_stats(metadata, [("Hlo Proto", data)])
        module = HloProto.FromString(data).hlo_module
        for made in (made for one in module.computations for made in one.instructions):
            at += 1000
            # No two take equally long: their order would be open.
            line.event("kernel", at, 10 + at, {"hlo_op": made.name, "program_id": number})
            at *= 1 + (at > 10**14)
    return builder.space


def _gpu(rng: random.Random, builder: SpaceBuilder, number: int) -> None:
    major, minor = rng.choice(CAPABILITIES)
    stats: dict[str, StatValue] = {
        "device_vendor": rng.choice(VENDORS), "compute_cap_major": major,
        "compute_cap_minor": minor, "clock_rate": rng.choice([1_410_000, 0, 999]),
        "core_count": rng.choice([108, 304, 0]), "memory_bandwidth": rng.choice([10**12, 0, 77]),
    }  # fmt: skip
    if stats["device_vendor"] == "AMD" and rng.random() < 0.5:
        stats["gpu_device_name"] = rng.choice(["gfx942", "gfx90a", "gfx1100", "MI300X"])
    if rng.random() < 0.2:
        stats["peak_teraflops_per_second"] = 312.5
        stats["peak_sram_rd_bw_gigabytes_per_second"] = 5.5
    plane = builder.plane(f"/device:GPU:{number}", stats)
    for _ in range(rng.randint(1, 3)):
        line, at, group = plane.line("Stream"), 0, 0
        for _ in range(rng.randint(0, 30)):
            at += rng.choice([0, 10, rng.randint(0, 9000)])
            group += rng.random() < 0.1
            op: dict[str, StatValue] = {}
            draw = rng.random()
            if draw < 0.7:
                op["hlo_op"] = rng.choice(["add.1", "add.2", "add.3", "x::add.4", "add.5", "gone"])
                op["program_id"] = rng.choice([PROGRAM, PROGRAM, PROGRAM + 1, 999])
            elif draw < 0.9:
                op["tf_op"] = rng.choice(["a/MatMul:MatMul", "IDLE:IDLE", "plain", "b/x:", ""])
            if rng.random() < 0.8:
                op["group_id"] = group
            if rng.random() < 0.1:
                op |= {"vdd_energy_j": 0.25, "flops": rng.choice([100, 5000])}
            if rng.random() < 0.1:
                op["bytes_accessed"] = 77
            for _ in range(rng.choice([1, 1, 2, 3])):
                own = rng.randint(1, 5000)
                line.event(rng.choice(["k1", "k2", "Memset"]), at, own, op)
                at += own


def _tpu(rng: random.Random, builder: SpaceBuilder, number: int, seed: int) -> None:
    names = [
        "device_type_string", "peak_teraflops_per_second", "peak_hbm_bw_gigabytes_per_second",
        "peak_sram_rd_bw_gigabytes_per_second", "peak_sram_wr_bw_gigabytes_per_second",
        "peak_cmem_rd_bw_gigabytes_per_second", "peak_cmem_wr_bw_gigabytes_per_second",
        "peak_vmem_rd_bw_gigabytes_per_second", "peak_vmem_wr_bw_gigabytes_per_second",
    ]  # fmt: skip
    values = ["TPU v4", 275.0, 1228.8, 9.5, 8.5, rng.choice([0.0, 77.5]), 33.5, 1000.0, 900.0]
    stats = {
        name: value
        for name, value in zip(names, values, strict=True)
        if rng.random() < 0.8 or name == "device_type_string"
    }
    stats |= {"has_merged_vmem": rng.randint(0, 1), "has_megacore": rng.randint(0, 1)}
    plane = builder.plane(f"/device:TPU:{number}", stats)
    if rng.random() < 0.6:
        steps, at = plane.line("Steps"), 0
        for step in range(rng.randint(1, 4)):
            own = rng.randint(10_000, 60_000) * LONG
            steps.event(str(step), at, own, {"group_id": step})
            at += own
    kinds = _kinds(seed, plane, rng.randint(1, 8))
    _run(rng, plane.line("XLA Ops"), kinds, 0, rng.randint(20_000, 200_000) * LONG, 0)


def _kinds(seed: int, plane: PlaneBuilder, count: int) -> list[int]:
    """Metadata of ops; those of all cores are alike, as one program runs on all."""
    kinds: list[int] = []
    for number in range(1, count + 1):
        own = random.Random(f"kind {seed} {number}")
        kind = plane.event_id(own.choice(TEXTS).format(f"op.{number}"))
        metadata = plane.message.event_metadata[kind]
        if own.random() < 0.8:
            shown = own.choice(["op.{}", "op.{}", "region_{}.op"])
            metadata.display_name = shown.format(number)
        program = own.choice([PROGRAM, PROGRAM, PROGRAM + 1])
        category = Ref(own.choice(CATEGORIES))
        stats: list[tuple[str, StatValue]] = [
            ("program_id", program), ("symbol_id", number), ("hlo_category", category),
        ]  # fmt: skip
        optional: list[tuple[str, StatValue]] = [
            ("tf_op", Ref(own.choice(PROVENANCES))), ("flops", own.choice([0, 10**6, 12345])),
            ("model_flops", own.choice([0, 10**6, 999])),
            ("bytes_accessed", own.choice([0, 4096, 10**7])),
            ("memory_access_breakdown", _breakdown(own)),
            ("deduplicated_name", Ref(own.choice(["op.1", "op.2"]))),
            ("source", own.choice(["a.py:12", "<b>&'\".py:3", "none", "c:d:4", "x.py: 7"])),
            ("source_stack", "a.py:12:1\nb.py:4:2"),
        ]  # fmt: skip
        plane.add_stats(metadata, stats[: own.choice([3, 3, 3, 3, 1])])
        plane.add_stats(metadata, [stat for stat in optional if own.random() < 0.6])
        if kinds and own.random() < 0.2:
            metadata.child_id.append(own.choice(kinds))
        kinds.append(kind)
    return kinds


def _breakdown(rng: random.Random) -> bytes:
    from peakline.schema import MemoryAccessBreakdown

    message = MemoryAccessBreakdown()
    for _ in range(rng.randint(0, 4)):
        message.memory_accessed.add(
            operation_type=rng.randint(0, 2), memory_space=rng.randint(0, 4),
            bytes_accessed=rng.choice([0, 100, 4096, 10**6]),
        )  # fmt: skip
    return message.SerializeToString()


def _run(
    rng: random.Random, line: LineBuilder, kinds: list[int], begin: int, end: int, depth: int
) -> None:
    """Ops one after the other, some of which hold others."""
    at = begin
    while at < end:
        at += rng.choice([0, 0, 7, 100]) * LONG
        own = min(rng.randint(50, 20_000) * LONG, end - at)
        if own <= 0:
            return
        stats: dict[str, StatValue] = {}
        if rng.random() < 0.8:
            stats |= {"device_offset_ps": at, "device_duration_ps": own}
        if rng.random() < 0.6:
            stats["group_id"] = rng.randint(0, 3)
        if rng.random() < 0.2:
            stats["Time Scale Multiplier"] = rng.choice([0.5, 1.0, 1.25])
        if rng.random() < 0.2:
            stats |= {"dma_stall_duration_ps": 11, "vdd_energy_j": 0.5}
        if rng.random() < 0.2:
            stats |= {"flops": 1000, "model_flops": 500, "bytes_accessed": 640}
        if rng.random() < 0.2:
            stats |= {"offload_core_id": Uint(0), "tc_offload_start_id": rng.randint(1, 2)}
        line.event("", at, own, stats, metadata_id=rng.choice(kinds))
        if depth < 3 and own > 100 * LONG and rng.random() < 0.3:
            _run(rng, line, kinds, at, at + own, depth + 1)
        at += own


def _sparse_core(rng: random.Random, builder: SpaceBuilder, seed: int) -> None:
    plane = builder.plane("/device:TPU:0 SparseCore 0", {"device_type_string": "TPU v4"})
    modules, at = plane.line("Sparse Core Modules"), 0
    spans = []
    for _ in range(rng.randint(1, 4)):
        own = rng.randint(1000, 9000) * LONG
        handed = {"offload_core_id": Uint(0), "tc_offload_start_id": Uint(rng.randint(1, 3))}
        modules.event("module", at, own, handed)
        spans.append((at, at + own))
        at += own + rng.choice([0, 50]) * LONG
    kinds = _kinds(seed, plane, rng.randint(1, 4))
    line = plane.line("Sparse Core Ops")
    for begin, end in spans:
        _run(rng, line, kinds, begin, end - rng.choice([0, 100]) * LONG, 1)
