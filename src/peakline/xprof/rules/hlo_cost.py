"""What XProf 2.24.2 counts differently for GPUs: the rules of XLA's GPU cost analysis.

``xla/service/gpu/model/gpu_hlo_cost_analysis.cc``, on top of the rules of
`peakline.hlo.cost_rules`: FLOPs of elementwise instructions are clock cycles, work that a fusion
does twice counts twice, what the analysis does not come to has no costs, and nothing has any in a
program with an instruction that it cannot read.

A call of cuBLAS carries JSON of a ``GpuBackendConfig`` (``xla/service/gpu/backend_configs.proto``).
XProf takes it by the definition of its own day: a field that was taken out since, such as
``wait_on_operation_queues``, or is newer, is an error.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.hlo.cost import NOTHING, Cost, Costing, ProgramCost, moved
from peakline.hlo.cost_rules import RULES, Rule, convolved, product, reduction, untouched
from peakline.hlo.program import (
    CONVOLUTIONS,
    Made,
    Program,
    elements,
    kind_of,
    leaves,
    single,
    size_of,
    whole_size_of,
)

if TYPE_CHECKING:
    from peakline.hlo.fusion import SumOf
    from peakline.schema import HloModuleProto, ShapeProto


_DOT = dict.fromkeys(
    ("lhs_contracting_dimensions", "rhs_contracting_dimensions", "lhs_batch_dimensions",
     "rhs_batch_dimensions")
)  # fmt: skip
_EPILOGUES = frozenset(
    "DEFAULT BIAS RELU BIAS_RELU GELU GELU_AUX BIAS_GELU BIAS_GELU_AUX SILU BIAS_SILU".split()
)
_PRODUCT: dict[str, Any] = {
    **dict.fromkeys(
        "selected_algorithm alpha_real alpha_imag beta lhs_stride rhs_stride grad_x grad_y "
        "damax_output autotune_workspace_size scale_mode has_d_scale".split()
    ),
    "dot_dimension_numbers": _DOT,
    "precision_config": dict.fromkeys(("operand_precision", "algorithm")),
    "epilogue": _EPILOGUES,
}
_CONFIG: dict[str, Any] = {
    **dict.fromkeys(
        "operation_queue_id cudnn_conv_backend_config bitcast_backend_config "
        "collective_backend_config fusion_backend_config cudnn_norm_backend_config "
        "cudnn_fmha_backend_config custom_call_backend_config block_scaled_dot_backend_config "
        "native_emitter_backend_config collective_metadata_backend_config dynamic_slice_config "
        "force_earliest_schedule".split()
    ),
    "gemm_backend_config": _PRODUCT,
    "grouped_gemm_backend_config": {
        "gemm_backend_config": _PRODUCT,
        "ragged_dot_dimension_numbers": None,
    },
    "reification_cost": dict.fromkeys(
        "end_to_end_cycles exec_time_us compute_time_us memory_access_time_us name".split()
    ),
    "device_type": frozenset(("DEVICE_TYPE_INVALID", "DEVICE_TYPE_DEVICE", "DEVICE_TYPE_HOST")),
}
"""Fields of messages by name; names of an enum; None is anything."""


def contracted(config: bytes) -> list[int] | None:
    """The dimensions of the left operand that a product sums over; None where it is not read.

    Raises ValueError where a dimension is no number.
    """
    if not config:
        return []
    try:
        read = json.loads(config)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict) or not _is_known(read, _CONFIG):
        return None
    numbers = (read.get("gemm_backend_config") or {}).get("dot_dimension_numbers") or {}
    return [int(one) for one in numbers.get("lhs_contracting_dimensions") or ()]


def _is_known(value: Any, expected: Any) -> bool:
    if expected is None or value is None:
        return True
    if isinstance(value, list):
        return all(_is_known(one, expected) for one in value)
    if isinstance(expected, frozenset):
        return isinstance(value, int) or value in expected
    return isinstance(value, dict) and all(
        name in expected and _is_known(part, expected[name]) for name, part in value.items()
    )


CYCLES_OF_OTHERS = 3

_TABLE = """
s8: divide 370 power 392
s16: divide 367 power 396
s32: divide 306
s64: divide 918 power 601
u8: divide 306 power 388
u16: divide 302 power 399
u32: divide 115
u64: divide 838 power 604
f16: cbrt 925 cosine 691 exponential 108 exponential-minus-one 396 log 266 log-plus-one 284
    logistic 226 rsqrt 97 sqrt 97 tanh 212 atan2 482 power 975
f32: cbrt 867 cosine 662 exponential 86 exponential-minus-one 381 log 244 log-plus-one 262
    logistic 176 rsqrt 75 sine 662 sqrt 75 tanh 190 atan2 486 power 925
f64: cbrt 6339 cosine 1717 exponential 1652 exponential-minus-one 1900 log 608 log-plus-one 2073
    logistic 2412 rsqrt 698 sine 1789 sqrt 986 tanh 1609 add 97 atan2 3747 divide 2016 multiply 97
    power 5511 subtract 97
c64: exponential 1360 exponential-minus-one 1400 log 950 log-plus-one 842 rsqrt 2383 sqrt 3193
    atan2 5353 divide 687 power 3351
c128: cosine 6613 exponential 4028 exponential-minus-one 4161 log 7599 log-plus-one 6962
    rsqrt 11318 sine 5878 sqrt 15606 tanh 9939 add 97 atan2 39027 divide 7941 multiply 270
    power 18205 subtract 97
"""
"""Clock cycles that an elementwise opcode takes per element, for some devices, in XLA's GPU cost
model (``xla/service/gpu/model``). XProf calls it without naming a device, gets the table of its
default (``sm_86``), and shows the cycles as FLOPs, whatever device the profile is of. Read out of
xprof 2.24.2; what the table lacks counts `CYCLES_OF_OTHERS`.
"""


CYCLES = {
    (opcode, kind): int(cycles)
    for kind, row in re.findall(r"(\w+): ([^:]*)(?=\n\w+:|$)", _TABLE)
    for opcode, cycles in re.findall(r"(\S+) (\d+)", row)
}
"""Clock cycles by opcode and element type, such as ``("tanh", "f32")``."""


PRODUCTS = frozenset(
    f"__cublas$lt${name}" for name in ("matmul", "matmul$f8", "matmul$mx", "groupedMatmul")
)
"""Matrix products whose costs it knows; of ``__cublas$gemm`` it knows nothing any more."""
_UNVISITED = frozenset(
    ("all-reduce", "all-reduce-start", "custom-call", "reduce-scatter", "sort", "topk")
)


class _UncostedError(Exception):
    """An instruction that ends the analysis: the whole program has no costs then."""


def _cycles(opcode: str, shape: ShapeProto) -> float:
    return float(CYCLES.get((opcode, kind_of(shape)), CYCLES_OF_OTHERS) * elements(shape))


def _elementwise(made: Made, _sum_of: SumOf, _program: Program) -> None:
    made.flops = _cycles(made.opcode, made.shape)


def _reduce(made: Made, sum_of: SumOf, program: Program) -> None:
    """The starting values are read for each element of the result."""
    reduction(made, sum_of, program)
    count = elements(leaves(made.shape)[0][1])
    for number in range(len(made.operands) // 2, len(made.operands)):
        made.read[number, ()] = count * size_of(made.operands[number].shape)
        made.use[number] = float(count)
    made.bytes = float(sum(made.read.values()) + made.out[()])


def _concatenate(made: Made, _sum_of: SumOf, _program: Program) -> None:
    along = made.proto.dimensions[0]
    is_odd = along > 0 and made.operands[0].shape.dimensions[along] & 31
    made.flops = float((400 if is_odd else 6) * elements(made.shape))


def _all_reduce(made: Made, _sum_of: SumOf, program: Program) -> None:
    _ranks(made)
    _reduced(made, program)


def _all_reduce_start(made: Made, _sum_of: SumOf, program: Program) -> None:
    _reduced(made, program)
    made.bytes = float(whole_size_of(made.shape))


def _reduced(made: Made, program: Program) -> None:
    made.flops = _cycles(program.roots[made.calls[0]].opcode, made.shape)


def _all_gather(made: Made, _sum_of: SumOf, _program: Program) -> None:
    _passed_on(made, whole_size_of(made.shape))


def _all_gather_start(made: Made, _sum_of: SumOf, _program: Program) -> None:
    """Its result is the operands and what they become."""
    _passed_on(made, sum(map(whole_size_of, made.shape.tuple_shapes[1:])))


def _reduce_scatter(made: Made, _sum_of: SumOf, program: Program) -> None:
    _passed_on(made, sum(whole_size_of(operand.shape) for operand in made.operands))
    _reduced(made, program)


def _passed_on(made: Made, size: int) -> None:
    """Every rank passes on the parts of the others, which it has read or written before."""
    ranks = _ranks(made)
    made.bytes = float(size // ranks * (3 * ranks - 1))


def _ranks(made: Made) -> int:
    """How many take part in a collective; without groups XProf knows of one device only.

    Groups of devices' global ids need a channel, and must be there
    (``xla/service/collective_ops_utils.cc``).
    """
    sizes = made.group_sizes()
    if made.proto.use_global_device_ids and not (made.proto.channel_id > 0 and sizes):
        raise _UncostedError
    return max(sizes, default=1)


def _async_start(made: Made, sum_of: SumOf, program: Program) -> None:
    """Costs nothing, unless it scatters."""
    root = program.roots[made.calls[0]]
    untouched(made, sum_of, program)
    if root.opcode == "reduce-scatter":
        made.flops, made.bytes = root.flops, root.bytes


def _scan(made: Made, sum_of: SumOf, _program: Program) -> None:
    made.flops = sum_of(0).flops


def _custom_call(made: Made, sum_of: SumOf, program: Program) -> None:
    target = made.proto.custom_call_target
    result = leaves(made.shape)[0][1]
    if target in PRODUCTS:
        contracting = contracted(made.proto.backend_config)
        if contracting is None:
            raise _UncostedError
        made.flops = product(made.operands[0].shape, result, contracting)
    elif target in CONVOLUTIONS:
        made.flops = convolved(made, result)
    else:
        untouched(made, sum_of, program)
        return
    made.out = {(): size_of(result)}
    made.bytes = float(sum(made.read.values()) + size_of(result))


_RULES: dict[str, Rule] = {
    **RULES,
    **dict.fromkeys(ELEMENTWISE - {"copy", "map", "rng"}, _elementwise),
    "all-gather": _all_gather,
    "all-gather-start": _all_gather_start,
    "all-reduce": _all_reduce,
    "all-reduce-start": _all_reduce_start,
    "async-start": _async_start,
    "concatenate": _concatenate,
    "custom-call": _custom_call,
    "reduce": _reduce,
    "reduce-scatter": _reduce_scatter,
    "scan": _scan,
}
"""By opcode; what is not here is `nothing_special`."""


class GpuCosting(Costing):
    """XProf's work on one program."""

    is_gpu = True
    by_opcode = _RULES

    def __init__(self, module: HloModuleProto) -> None:
        super().__init__(module)
        self._uncosted: set[int] = set()
        """Computations in which the analysis ends."""

    def answer(self) -> ProgramCost:
        """The costs of the program; none where the analysis ends."""
        try:
            return super().answer()
        except _UncostedError:
            return ProgramCost({}, NOTHING, self.guessed)

    def count(self, made: Made, program: Program, computation: int) -> None:
        """Count an instruction, or note that the analysis ends with it."""
        try:
            super().count(made, program, computation)
        except _UncostedError:
            self._uncosted.add(computation)

    def counted(self, program: Program) -> set[int]:
        """The computations that the analysis comes to, from the entry on."""
        result: set[int] = set()
        waiting = [program.entry]
        while waiting:
            number = waiting.pop()
            if number not in result and number in program.computations:
                result.add(number)
                for made in program.computations[number]:
                    waiting += _visited(made, program)
        if not self._uncosted.isdisjoint(result):
            raise _UncostedError
        return result

    def cost(self, made: Made) -> Cost:
        """In whole numbers: XLA keeps 32 bits of a float; of what is moved those of each part."""
        numbers = made.flops, made.bytes, made.transcendentals
        whole = [_whole_number(number) for number in numbers]
        made.read = {place: _whole_number(size) for place, size in made.read.items()}
        made.out = {index: _whole_number(size) for index, size in made.out.items()}
        whole += map(int, moved(made))
        saved = int(single(made.flops - made.flops / _faster(made)))
        return Cost(*map(float, (*whole, whole[0] - saved)))


def _whole_number(number: float) -> int:
    return int(single(max(number, 0)))


def _visited(made: Made, program: Program) -> list[int]:
    """The computations that have costs since ``made`` has: of most opcodes all that it calls."""
    if made.opcode in _UNVISITED:
        return []
    if made.opcode == "fusion" and (part := program.copied_part(made)) is not None:
        return part.calls
    return made.calls


def _faster(made: Made) -> int:
    """As `Made.faster`; of calls only products are, by their first operand."""
    if made.opcode != "custom-call":
        return made.faster()
    return made.faster(1) if made.proto.custom_call_target in PRODUCTS else 1
