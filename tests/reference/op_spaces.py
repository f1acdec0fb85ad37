"""XSpaces full of ops: random threads, GPU streams and TPU cores, and a compiled program.

Ordinary times only, but dense: many ops begin and end together.
"""

import random
from typing import Any

from peakline.schema import HloProto, XSpace
from reference.xspace_builder import LineBuilder, PlaneBuilder, Ref, SpaceBuilder, StatValue

PROGRAM = 7
NAMES = [
    "MatMul:MatMul", "a/MatMul:MatMul", "a/MatMul:_FusedMatMul", "b/add:", "b/mul_1:", "b/c_x:",
    "jit(f)/add:add", "dot:dot_general[precision=None]", "Iterator::Map::Range:x", "MEMCPYHtoD_1",
    "memcpydtoh", "work", "x: y", ":", ":mul", "gradients/x:Add", "gradient_tape/y/z:Mul",
    "transpose(jvp(f))/mul:mul", "IDLE:IDLE", "µ:Relu", "a b:Relu", "a_ 5:", "q_+1:", "MatMul:",
]  # fmt: skip
OPS = [
    "MatMul:MatMul", "a/MatMul:MatMul", "", "plain", "jit(f)/dot_general:dot_general", "e:Einsum",
]  # fmt: skip
KERNELS = [
    "volta_h884gemm", "nvjet_x", "_MI16x16x16x1_SN", "_MI16x16", "gemm_fusion_dot", "add_xdl",
    "loop_fusion", "Memset", "wmma_k", "i16832",
]  # fmt: skip
DETAILS = [
    "regs:32 static_shared:0 dynamic_shared:16 grid:128,1,1 block:256,1,1 occ_pct:50.0",
    "regs:32 static_shared:0 dynamic_shared:16 grid:128,1,1 block:256,1,1 occ_pct:25",
    " grid:4,64,1 block:256,1,1 private_mem:0 group_mem:8704 occ_pct:0", "regs:+5\nblock:1,2,3",
    "regs:-1 grid:1,2 block:a,b,c occ_pct:x", "regs:4294967296 static_shared:4294967295", "regs:",
    "grid:1:2", "static_shared:4294967295 dynamic_shared:3", "",
]  # fmt: skip


def random_op_space(seed: int) -> XSpace:
    """The XSpace that belongs to ``seed``: a host, and often GPUs or TPUs."""
    rng = random.Random(f"ops {seed}")
    builder = SpaceBuilder()
    _host(rng, builder)
    kind = rng.choice(["", "gpu", "gpu", "tpu", "tpu"])
    for number in range(rng.randint(1, 3) if kind else 0):
        (_gpu if kind == "gpu" else _tpu)(rng, builder, number)
    if rng.random() < 0.7:
        plane = add_program(builder, PROGRAM)
        if rng.random() < 0.5:
            add_program(builder, PROGRAM + 1, "other/", plane)
    return builder.space


def add_program(
    builder: SpaceBuilder, number: int, scope: str = "", plane: PlaneBuilder | None = None
) -> PlaneBuilder:
    """Put the program into the XSpace as the profiler does; gives the plane that holds it."""
    plane = plane or builder.plane("/host:metadata")
    metadata = plane.message.event_metadata[number]
    metadata.id, metadata.name = number, f"main({number})"
    plane.add_stats(metadata, [("Hlo Proto", program(scope).SerializeToString())])
    return plane


def program(scope: str = "") -> HloProto:
    """A program of element-wise sums of 1024 numbers, with and without the framework's names."""
    proto = HloProto()
    module = proto.hlo_module
    module.name, module.id = "main", PROGRAM
    module.entry_computation_name, module.entry_computation_id = "main", 1
    computation = module.computations.add(name="main", id=1)
    kinds = [
        ("x", "parameter", "", ""), ("add.1", "add", "jit(f)/dot_general", "dot_general"),
        ("add.2", "add", "jit(f)/add", ""), ("add.3", "add", "", "mul"), ("add.4", "add", "", ""),
        ("add.5", "add", "a/MatMul", "MatMul"), ("add.6", "add", "a/MatMul", ""),
    ]  # fmt: skip
    for number, (name, opcode, op_name, op_type) in enumerate(kinds):
        made = computation.instructions.add(name=name, opcode=opcode, id=number + 1)
        _shape(made.shape)
        made.metadata.op_name, made.metadata.op_type = op_name and scope + op_name, op_type
        if opcode == "add":
            made.operand_ids.extend([number, number])
    _shape(module.host_program_shape.parameters.add())
    module.host_program_shape.parameter_names.append("x")
    _shape(module.host_program_shape.result)
    computation.root_id = len(kinds)
    computation.program_shape.CopyFrom(module.host_program_shape)
    return proto


def _shape(shape: Any) -> None:
    shape.element_type = 11  # F32
    shape.dimensions.append(1024)
    shape.is_dynamic_dimension.append(False)
    shape.layout.minor_to_major.append(0)


def _times(rng: random.Random, most: int) -> list[tuple[int, int]]:
    """Offsets and durations on a coarse grid; mostly in order."""
    spans = [
        (rng.randint(0, 40) * 1000, rng.choice([0, 1, 2, 4, 9, 30]) * 1000)
        for _ in range(rng.randint(0, most))
    ]
    if rng.random() < 0.8:
        spans.sort(key=lambda span: (span[0], -span[1]))
    return spans


def _derived_id(rng: random.Random) -> int:
    """Some as a number with a sign, as older versions of TensorFlow write them."""
    number = rng.randint(0, 500)
    return 0xDEADBEEF + number - (2**32 if number % 2 else 0)


def _host(rng: random.Random, builder: SpaceBuilder) -> None:
    plane = builder.host()
    for _ in range(rng.randint(0, 4)):
        line = plane.line("thread", rng.choice([0, 0, 3]))
        if rng.random() < 0.1:
            line.message.id = _derived_id(rng)
        for offset, duration in _times(rng, 25):
            stats: list[tuple[str, StatValue]] = []
            name = rng.choice(NAMES)
            if rng.random() < 0.2:
                stats.append(("tf_op", rng.choice([*OPS, Ref("q/r:Sub"), 5])))
            if rng.random() < 0.2:
                stats.append(("is_eager", rng.choice([0, 1])))
            if rng.random() < 0.15:
                stats.append(("_ipl_stage_id", rng.choice([1, 2, 300, 301])))
                if rng.random() < 0.8:
                    stats.append(("_ipl_stage_cat", rng.choice(["read", Ref("preprocessing")])))
            if rng.random() < 0.1:
                memory = [("tf_op", rng.choice(OPS)), ("allocator_name", "cpu")]
                line.event("MemoryAllocation", offset, 0, memory)
                continue
            line.event(name, offset, duration, stats)


def _gpu(rng: random.Random, builder: SpaceBuilder, number: int) -> None:
    vendor = rng.choice(["Nvidia", "AMD", "AMD", "Other", ""])
    major, minor = rng.choice([(9, 0), (7, 5), (8, 6), (8, 9), (8, 7), (9, 4), (9, 5), (2, 1)])
    stats: dict[str, StatValue] = {
        "device_vendor": vendor, "compute_cap_major": major, "compute_cap_minor": minor,
        "clock_rate": 1_500_000, "core_count": 100, "memory_bandwidth": 10**12,
        "memory_size": 10**10,
    }  # fmt: skip
    plane = builder.plane(f"/device:GPU:{number}", stats if vendor else {})
    for _ in range(rng.randint(0, 3)):
        line = plane.line("Stream #1(Kernel)", rng.choice([0, 0, 3]))
        if rng.random() < 0.1:
            line.message.id = _derived_id(rng)
        for offset, duration in _times(rng, 20):
            _kernel(rng, line, offset, duration + rng.choice([0, 0, 1, 500]))


def _kernel(rng: random.Random, line: LineBuilder, offset: int, duration: int) -> None:
    stats: list[tuple[str, StatValue]] = []
    if rng.random() < 0.8:
        stats.append(("kernel_details", rng.choice([*DETAILS, Ref(DETAILS[0]), 5])))
    if rng.random() < 0.5:
        stats.append(("tf_op", rng.choice(OPS)))
        stats.append(("equation", rng.choice(["", "ab,bc->ac", "a,b,c->d", "ab->a", "a,b"])))
    if rng.random() < 0.5:
        name = rng.choice(["add.1", "add.2", "add.3", "x::add.4", "add.5", "add.6", "gone", ""])
        stats += [("hlo_op", name), ("hlo_module", "main")]
        if rng.random() < 0.2:
            stats.append(("group_id", rng.randint(1, 3)))
        if rng.random() < 0.9:
            stats.append(("program_id", rng.choice([PROGRAM, PROGRAM, 8])))
    if rng.random() < 0.3:
        stats.append(("correlation_id", rng.randint(0, 9)))
    line.event(rng.choice(KERNELS), offset, duration, stats)


def _tpu(rng: random.Random, builder: SpaceBuilder, number: int) -> None:
    stats: dict[str, StatValue] = {
        "device_type_string": "TPU v6 Lite", "peak_teraflops_per_second": 918.0,
        "peak_hbm_bw_gigabytes_per_second": 1638.0,
    }  # fmt: skip
    plane = builder.plane(f"/device:TPU:{number}", stats)
    kinds = [_tpu_kind(rng, plane, n) for n in range(8)]
    for name in rng.sample(["Steps", "XLA Ops", "Async XLA Ops", "XLA Modules"], rng.randint(1, 4)):
        line = plane.line(name, rng.choice([0, 0, 3]))
        if name == "Steps":
            line.event("0", 0, 50_000)
            continue
        clocked = rng.random() < 0.5
        for offset, duration in _nested(rng):
            clock: list[tuple[str, StatValue]] = []
            if clocked:
                clock = [("device_offset_ps", offset + 7000), ("device_duration_ps", duration)]
            line.event("", offset, duration, clock, metadata_id=rng.choice(kinds))


def _nested(rng: random.Random) -> list[tuple[int, int]]:
    """Spans that lie one in another or beside each other, as a TPU core runs its ops."""
    spans, at = [], 0
    for _ in range(rng.randint(0, 10)):
        length = rng.choice([0, 1000, 4000, 9000])
        spans.append((at, length))
        if length > 4000:
            spans += [(at, 1000), (at + 2000, 2000), (at + 8000, 1000)][: rng.randint(0, 3)]
        at += length + rng.choice([0, 0, 500])
    return spans


def _tpu_kind(rng: random.Random, plane: PlaneBuilder, number: int) -> int:
    metadata_id = plane.event_id(f"%op.{number} = f32[2] thing()")
    metadata = plane.message.event_metadata[metadata_id]
    if rng.random() < 0.8:
        metadata.display_name = f"op.{number}"
    flops = rng.choice([0, 10, 10**9])
    stats: list[tuple[str, StatValue]] = [
        ("program_id", PROGRAM), ("symbol_id", number + rng.choice([0, 1, 1, 1])),
        ("hlo_category", rng.choice(["fusion", "copy-done", "all-reduce"])),
        ("flops", flops), ("model_flops", rng.choice([0, 0, flops // 2])),
        ("bytes_accessed", rng.choice([0, 4096, 10**7])),
        ("tf_op", rng.choice(["", "jit(f)/add:", "jit(f)/mul:mul", "a/MatMul:MatMul", "odd"])),
    ]  # fmt: skip
    plane.add_stats(metadata, [stat for stat in stats if rng.random() < 0.95])
    return metadata_id
