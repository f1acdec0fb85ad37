"""What XLA writes behind the operands of each kind of instruction
(``PrintExtraAttributesImpl`` in ``xla/hlo/ir/hlo_instructions.cc``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from peakline import schema
from peakline.formats.hlo_proto.shapes import type_names
from peakline.hlo.printing.devices import replica_groups
from peakline.hlo.printing.dimensions import (
    DIMENSIONS,
    Attributes,
    group_counts,
    labels_text,
    precision,
    window_text,
)
from peakline.hlo.printing.literals import ELIDED, UnreadableLiteral, literal_text
from peakline.hlo.printing.quoting import braced, listed, quoted
from peakline.hlo.printing.shapes import with_layout

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    from peakline.schema import HloInstructionProto, ShapeProto

OLD_COMPARISONS = {
    "equal-to": "EQ", "not-equal-to": "NE", "greater-than": "GT", "less-than": "LT",
    "greater-than-or-equal-to": "GE", "less-than-or-equal-to": "LE",
}  # fmt: skip
"""Opcodes of old files that are comparisons, and which."""
_ACCURATE = frozenset(
    """
    acos acosh asin asinh atanh cbrt cosine cosh erf exponential exponential-minus-one log
    log-plus-one logistic rsqrt sine sinh sqrt tan tanh
    """.split()
)
BY_SHAPE = frozenset(
    """
    collective-permute collective-permute-start compare conditional convolution custom-call dot
    """.split()
).union(OLD_COMPARISONS)
"""Opcodes of which something depends on the shapes of the operands, or on how many there are."""
_TABLE: dict[str, Attributes] = {}


def attributes(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    """The attributes that belong to the opcode alone."""
    result = _TABLE.get(made.opcode) or DIMENSIONS.get(made.opcode)
    return result(made, operands) if result else iter(())


def _of(*opcodes: str) -> Callable[[Attributes], Attributes]:
    def enter(function: Attributes) -> Attributes:
        _TABLE.update(dict.fromkeys(opcodes, function))
        return function

    return enter


@cache
def _enum(name: str) -> EnumTypeWrapper:
    result: EnumTypeWrapper = getattr(schema, name)
    return result


def _word(enum: str, number: int) -> str:
    """The name of an enum's value, or the number of one that is not known."""
    wrapper = _enum(enum)
    return wrapper.Name(number) if number in wrapper.values() else str(number)


@_of("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def _batch_norm(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"epsilon={made.epsilon:.6g}"
    yield f"feature_index={made.feature_index}"


@_of("fft")
def _fft(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"fft_type={_word('FftType', made.fft_type)}"
    yield f"fft_length={braced(made.fft_length)}"


@_of("copy-start")
def _copy_start(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    if made.HasField("cross_program_prefetch_index"):
        yield f"cross_program_prefetch_index={made.cross_program_prefetch_index}"
    elif made.is_cross_program_prefetch:
        yield "cross_program_prefetch_index=0"


@_of("compare", *OLD_COMPARISONS)
def _compare(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"direction={OLD_COMPARISONS.get(made.opcode) or made.comparison_direction}"
    kind = made.comparison_type
    if kind and (not operands or kind != _usual_comparison(operands[0])):
        yield f"type={kind}"


def _usual_comparison(shape: ShapeProto) -> str:
    name = type_names().get(shape.element_type, "")
    if name[:1] == "s":
        return "SIGNED"
    return "UNSIGNED" if name == "pred" or name[:1] == "u" else "FLOAT"


@_of("triangular-solve")
def _triangular(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    options = made.triangular_solve_options
    for name in ("left_side", "lower", "unit_diagonal"):
        if getattr(options, name):
            yield f"{name}=true"
    if options.transpose_a:
        yield f"transpose_a={options.Transpose.Name(options.transpose_a)}"


@_of("cholesky")
def _cholesky(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    if made.cholesky_options.lower:
        yield "lower=true"


@_of("topk")
def _top(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"k={made.k}"
    yield f"largest={_truth(made.largest)}"


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _channel(made: HloInstructionProto) -> Iterator[str]:
    number = made.all_reduce_id if made.all_reduce_id > 0 else made.channel_id
    if number > 0:
        yield f"channel_id={number}"


@_of("send", "send-done", "recv", "recv-done")
def _transfer(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _channel(made)
    if made.is_host_transfer:
        yield "is_host_transfer=true"


@_of("all-to-all", "collective-broadcast", "ragged-all-to-all")
def _collective(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _channel(made)
    yield f"replica_groups={replica_groups(made)}"
    if made.constrain_layout and made.opcode not in ("collective-broadcast", "ragged-all-to-all"):
        yield "constrain_layout=true"
    if made.opcode == "all-to-all" and made.dimensions:
        yield f"dimensions={braced(made.dimensions[:1])}"


@_of("all-gather", "all-gather-start", "all-reduce", "all-reduce-start", "reduce-scatter")
def _reducing(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _channel(made)
    yield f"replica_groups={replica_groups(made)}"
    if made.constrain_layout:
        yield "constrain_layout=true"
    dimensions = f"dimensions={braced(made.dimensions[:1])}"
    if made.opcode.startswith("all-gather"):
        yield dimensions
    if made.use_global_device_ids:
        yield "use_global_device_ids=true"
    if made.opcode == "reduce-scatter":
        yield dimensions


@_of("collective-permute", "collective-permute-start")
def _permute(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield from _channel(made)
    pairs = (f"{{{pair.source},{pair.target}}}" for pair in made.source_target_pairs)
    yield f"source_target_pairs={braced(pairs)}"
    sizes = list(made.dynamic_slice_sizes)
    if sizes and operands:
        parts = operands[0].tuple_shapes or [operands[0]]
        width = max(1, len(parts[0].dimensions))
        pieces = (braced(sizes[at : at + width]) for at in range(0, len(sizes), width))
        yield f"slice_sizes={braced(pieces)}"


@_of("reverse", "concatenate", "reduce", "transpose", "broadcast")
def _dimensions(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"dimensions={braced(made.dimensions)}"


@_of("get-dimension-size", "set-dimension-size")
def _dimension(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"dimensions={braced(made.dimensions[:1])}"


@_of("sort")
def _sort(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"dimensions={braced(made.dimensions[:1])}"
    if made.is_stable:
        yield "is_stable=true"


@_of("reshape")
def _reshape(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    if made.dimensions and made.dimensions[0] != -1:
        yield f"inferred_dimension={made.dimensions[0]}"


@_of("map")
def _map(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"dimensions={braced(range(len(made.shape.dimensions)))}"


@_of("slice")
def _slice(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    with_steps = any(one.stride != 1 for one in made.slice_dimensions)
    parts = (
        f"[{one.start}:{one.limit}:{one.stride}]" if with_steps else f"[{one.start}:{one.limit}]"
        for one in made.slice_dimensions
    )
    yield f"slice={{{', '.join(parts)}}}"


@_of("fusion")
def _fusion(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"kind={made.fusion_kind}"
    yield from _aliasing(made)


def _aliasing(made: HloInstructionProto) -> Iterator[str]:
    pairs = [
        f"{braced(one.output_shape_index)}: ({one.operand_index}, "
        f"{braced(one.operand_shape_index)})"
        for one in made.output_operand_aliasing
    ]
    if pairs:
        yield f"output_to_operand_aliasing={{{', '.join(pairs)}}}"


@_of("rng")
def _rng(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"distribution={_word('RandomDistribution', made.distribution).lower()}"


@_of("rng-bit-generator")
def _rng_bits(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"algorithm={_word('RandomAlgorithm', made.rng_algorithm).lower()}"


@_of("rng-get-and-update-state")
def _rng_state(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"delta={made.delta}"


@_of("parameter")
def _parameter(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    replicated = made.parameter_replication.replicated_at_leaf_buffers
    if replicated:
        yield f"parameter_replication={braced(map(_truth, replicated))}"


@_of("get-tuple-element")
def _element(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"index={made.tuple_index}"


@_of("reduce-precision")
def _precision_bits(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"exponent_bits={made.exponent_bits}"
    yield f"mantissa_bits={made.mantissa_bits}"


@_of("infeed")
def _infeed(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    if made.infeed_config:
        yield f"infeed_config={quoted(made.infeed_config)}"


@_of("outfeed")
def _outfeed(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"outfeed_shape={with_layout(made.outfeed_shape)}"
    if made.outfeed_config:
        yield f"outfeed_config={quoted(made.outfeed_config)}"


@_of("custom-call")
def _custom_call(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    if made.HasField("window"):
        yield f"window={{{window_text(made.window)}}}"
    if made.HasField("convolution_dimension_numbers"):
        yield f"dim_labels={labels_text(made.convolution_dimension_numbers)}"
    yield from group_counts(made)
    yield from precision(made, len(operands))
    if made.padding_type:
        yield f"padding_type={_word('PaddingType', made.padding_type)}"
    yield f"custom_call_target={quoted(made.custom_call_target)}"
    if made.constrain_layout:
        shapes = ", ".join(map(with_layout, made.operand_shapes_with_layout))
        yield f"operand_layout_constraints={{{shapes}}}"
    if made.custom_call_has_side_effect:
        yield "custom_call_has_side_effect=true"
    yield from _custom_literal(made)
    yield from _aliasing(made)
    if made.custom_call_schedule:
        yield f"schedule={_word('CustomCallSchedule', made.custom_call_schedule)}"
    if made.custom_call_api_version != 1:
        yield f"api_version={_word('CustomCallApiVersion', made.custom_call_api_version)}"


def _custom_literal(made: HloInstructionProto) -> Iterator[str]:
    if made.HasField("literal"):
        try:
            yield f"literal={''.join(literal_text(made.literal, shapes=True))}"
        except UnreadableLiteral:
            yield f"literal={ELIDED}"


@_of("dynamic-slice")
def _dynamic_slice(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"dynamic_slice_sizes={braced(made.dynamic_slice_sizes)}"


@_of("iota")
def _iota(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"iota_dimension={listed(made.dimensions[:1])}"


@_of("scan")
def _scan(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield f"dimensions={braced(made.dimensions[:1])}"
    if made.is_reverse:
        yield "is_reverse=true"
    if made.is_associative:
        word = _word("TriState", made.is_associative).removeprefix("TRI_STATE_")
        yield f"is_associative={word.lower()}"
    if made.num_carries:
        yield f"num_carries={made.num_carries}"


def statistics(made: HloInstructionProto) -> Iterator[str]:
    """What tools measured of an instruction (``StatisticsVizToString``)."""
    result = made.statistics_viz
    if result.statistics:
        parts = [f"visualizing_index={result.stat_index_to_visualize}"]
        parts += [f"{one.stat_name}={one.stat_val:.6g}" for one in result.statistics]
        yield f"statistics={braced(parts)}"


def accuracy(made: HloInstructionProto) -> Iterator[str]:
    """How exact the result of a function must be."""
    if made.opcode not in _ACCURATE:
        return
    wanted = made.result_accuracy
    if wanted.WhichOneof("specs") == "tolerance":
        limits = wanted.tolerance
        yield (
            f"result_accuracy={{tolerance={{atol={limits.atol:.6g},rtol={limits.rtol:.6g},"
            f"ulps={limits.ulps}}}}}"
        )
    elif wanted.mode:
        yield f"result_accuracy={{mode={wanted.Mode.Name(wanted.mode).lower()}}}"
