"""The attributes of an instruction as XLA writes them, opcode by opcode
(``xla/hlo/ir/hlo_instructions.cc`` and ``hlo_instruction.cc`` in openxla/xla).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from peakline.hlo.braces import braced
from peakline.hlo.collective_texts import collective, gathering, permute
from peakline.hlo.shape_texts import layout_shape

if TYPE_CHECKING:
    from peakline.schema import (
        ConvolutionDimensionNumbers,
        DotDimensionNumbers,
        HloInstructionProto,
        Window,
    )

Attributes = Callable[["HloInstructionProto"], Iterator[str]]
_LARGEST_DIMENSIONS = 64


def attributes(made: HloInstructionProto) -> Iterator[str]:
    """Its own attributes; of what it calls nothing."""
    yield from _BY_OPCODE.get(made.opcode, _none)(made)


def _none(_made: HloInstructionProto) -> Iterator[str]:
    yield from ()


def _dimensions(made: HloInstructionProto) -> Iterator[str]:
    yield f"dimensions={braced(made.dimensions)}"


def _iota(made: HloInstructionProto) -> Iterator[str]:
    yield f"iota_dimension={made.dimensions[0] if made.dimensions else 0}"


def _sort(made: HloInstructionProto) -> Iterator[str]:
    yield from _dimensions(made)
    if made.is_stable:
        yield "is_stable=true"


def _slice(made: HloInstructionProto) -> Iterator[str]:
    parts = made.slice_dimensions
    has_stride = any(part.stride != 1 for part in parts)
    texts = [
        f"[{part.start}:{part.limit}{f':{part.stride}' if has_stride else ''}]" for part in parts
    ]
    yield f"slice={braced(texts, ', ')}"


def _dynamic_slice(made: HloInstructionProto) -> Iterator[str]:
    yield f"dynamic_slice_sizes={braced(made.dynamic_slice_sizes)}"


def _tuple_element(made: HloInstructionProto) -> Iterator[str]:
    yield f"index={made.tuple_index}"


def _compare(made: HloInstructionProto) -> Iterator[str]:
    yield f"direction={made.comparison_direction}"
    kind = made.comparison_type
    if kind and not (kind == "FLOAT" or kind in ("SIGNED", "UNSIGNED")):
        yield f"type={kind}"


def _pad(made: HloInstructionProto) -> Iterator[str]:
    sizes = made.padding_config.dimensions
    has_interior = any(size.interior_padding for size in sizes)
    texts = [
        f"{size.edge_padding_low}_{size.edge_padding_high}"
        + (f"_{size.interior_padding}" if has_interior else "")
        for size in sizes
    ]
    yield f"padding={'x'.join(texts)}"


def _fusion(made: HloInstructionProto) -> Iterator[str]:
    yield f"kind={made.fusion_kind}"
    yield from _aliasing(made)


def _aliasing(made: HloInstructionProto) -> Iterator[str]:
    pairs = [
        f"{braced(pair.output_shape_index, ', ')}: ({pair.operand_index}, "
        f"{braced(pair.operand_shape_index, ', ')})"
        for pair in made.output_operand_aliasing
    ]
    if pairs:
        yield f"output_to_operand_aliasing={braced(pairs, ', ')}"


def _window(window: Window) -> str:
    """The window of a convolution or a reduction."""
    sizes = window.dimensions
    texts = [f"size={'x'.join(str(one.size) for one in sizes)}"] if sizes else []
    if any(one.stride != 1 for one in sizes):
        texts.append(f"stride={'x'.join(str(one.stride) for one in sizes)}")
    if any(one.padding_low or one.padding_high for one in sizes):
        texts.append(f"pad={'x'.join(f'{one.padding_low}_{one.padding_high}' for one in sizes)}")
    if any(one.base_dilation != 1 for one in sizes):
        texts.append(f"lhs_dilate={'x'.join(str(one.base_dilation) for one in sizes)}")
    if any(one.window_dilation != 1 for one in sizes):
        texts.append(f"rhs_dilate={'x'.join(str(one.window_dilation) for one in sizes)}")
    if any(one.window_reversal for one in sizes):
        texts.append(f"rhs_reversal={'x'.join(str(int(one.window_reversal)) for one in sizes)}")
    return f"window={braced(texts, ' ')}"


def _reduce_window(made: HloInstructionProto) -> Iterator[str]:
    if made.window.dimensions:
        yield _window(made.window)


def _labels(numbers: ConvolutionDimensionNumbers) -> str:
    def named(first: int, first_name: str, second: int, second_name: str, rest: list[int]) -> str:
        count = max(first, second, *rest, 0) + 1
        names = ["?"] * min(count, _LARGEST_DIMENSIONS)
        for place, name in ((first, first_name), (second, second_name)):
            if 0 <= place < len(names):
                names[place] = name
        for number, place in enumerate(rest):
            if 0 <= place < len(names):
                names[place] = str(number)
        return "".join(names)

    left = named(
        numbers.input_batch_dimension, "b", numbers.input_feature_dimension, "f",
        list(numbers.input_spatial_dimensions),
    )  # fmt: skip
    right = named(
        numbers.kernel_input_feature_dimension, "i", numbers.kernel_output_feature_dimension, "o",
        list(numbers.kernel_spatial_dimensions),
    )  # fmt: skip
    result = named(
        numbers.output_batch_dimension, "b", numbers.output_feature_dimension, "f",
        list(numbers.output_spatial_dimensions),
    )  # fmt: skip
    return f"dim_labels={left}_{right}->{result}"


def _convolution(made: HloInstructionProto) -> Iterator[str]:
    if made.window.dimensions:
        yield _window(made.window)
    yield _labels(made.convolution_dimension_numbers)
    yield from _groups_of_features(made)
    yield from _precision(made)


def _groups_of_features(made: HloInstructionProto) -> Iterator[str]:
    if made.feature_group_count > 1:
        yield f"feature_group_count={made.feature_group_count}"
    if made.batch_group_count > 1:
        yield f"batch_group_count={made.batch_group_count}"


def _precision(made: HloInstructionProto) -> Iterator[str]:
    from peakline.schema import PrecisionConfig

    said = made.precision_config.operand_precision
    if any(said):
        names = [PrecisionConfig.Precision.Name(one).lower() for one in said]
        yield f"operand_precision={braced(names)}"
    if made.precision_config.algorithm:
        name = PrecisionConfig.Algorithm.Name(made.precision_config.algorithm)
        yield f"algorithm={name.removeprefix('ALG_').lower()}"


def _dot(made: HloInstructionProto) -> Iterator[str]:
    yield from _dot_numbers(made.dot_dimension_numbers)
    yield from _precision(made)


def _dot_numbers(numbers: DotDimensionNumbers) -> Iterator[str]:
    if numbers.lhs_batch_dimensions:
        yield f"lhs_batch_dims={braced(numbers.lhs_batch_dimensions)}"
    yield f"lhs_contracting_dims={braced(numbers.lhs_contracting_dimensions)}"
    if numbers.rhs_batch_dimensions:
        yield f"rhs_batch_dims={braced(numbers.rhs_batch_dimensions)}"
    yield f"rhs_contracting_dims={braced(numbers.rhs_contracting_dimensions)}"


def _gather(made: HloInstructionProto) -> Iterator[str]:
    numbers = made.gather_dimension_numbers
    yield f"offset_dims={braced(numbers.offset_dims)}"
    yield f"collapsed_slice_dims={braced(numbers.collapsed_slice_dims)}"
    yield f"start_index_map={braced(numbers.start_index_map)}"
    if numbers.operand_batching_dims:
        yield f"operand_batching_dims={braced(numbers.operand_batching_dims)}"
    if numbers.start_indices_batching_dims:
        yield f"start_indices_batching_dims={braced(numbers.start_indices_batching_dims)}"
    yield f"index_vector_dim={numbers.index_vector_dim}"
    yield f"slice_sizes={braced(made.gather_slice_sizes)}"
    if made.indices_are_sorted:
        yield "indices_are_sorted=true"


def _scatter(made: HloInstructionProto) -> Iterator[str]:
    numbers = made.scatter_dimension_numbers
    yield f"update_window_dims={braced(numbers.update_window_dims)}"
    yield f"inserted_window_dims={braced(numbers.inserted_window_dims)}"
    yield f"scatter_dims_to_operand_dims={braced(numbers.scatter_dims_to_operand_dims)}"
    if numbers.input_batching_dims:
        yield f"input_batching_dims={braced(numbers.input_batching_dims)}"
    if numbers.scatter_indices_batching_dims:
        yield f"scatter_indices_batching_dims={braced(numbers.scatter_indices_batching_dims)}"
    yield f"index_vector_dim={numbers.index_vector_dim}"
    if made.indices_are_sorted:
        yield "indices_are_sorted=true"
    if made.unique_indices:
        yield "unique_indices=true"


def _custom_call(made: HloInstructionProto) -> Iterator[str]:
    from peakline.schema import CustomCallApiVersion, CustomCallSchedule, PaddingType

    if made.HasField("window"):
        yield _window(made.window)
    if made.HasField("convolution_dimension_numbers"):
        yield _labels(made.convolution_dimension_numbers)
    yield from _groups_of_features(made)
    yield from _precision(made)
    if made.padding_type:
        yield f"padding_type={PaddingType.Name(made.padding_type)}"
    yield f"custom_call_target={json.dumps(made.custom_call_target)}"
    if made.constrain_layout:
        shapes = [layout_shape(shape) for shape in made.operand_shapes_with_layout]
        yield f"operand_layout_constraints={braced(shapes, ', ')}"
    if made.custom_call_has_side_effect:
        yield "custom_call_has_side_effect=true"
    yield from _aliasing(made)
    if made.custom_call_schedule:
        yield f"schedule={CustomCallSchedule.Name(made.custom_call_schedule)}"
    if made.custom_call_api_version > 1:
        yield f"api_version={CustomCallApiVersion.Name(made.custom_call_api_version)}"


def _transfer(made: HloInstructionProto) -> Iterator[str]:
    if made.channel_id > 0:
        yield f"channel_id={made.channel_id}"
    if made.is_host_transfer:
        yield "is_host_transfer=true"


def _rng(made: HloInstructionProto) -> Iterator[str]:
    from peakline.schema import RandomDistribution

    yield f"distribution={RandomDistribution.Name(made.distribution).lower()}"


def _rng_bits(made: HloInstructionProto) -> Iterator[str]:
    from peakline.schema import RandomAlgorithm

    yield f"algorithm={RandomAlgorithm.Name(made.rng_algorithm).lower()}"


def _rng_state(made: HloInstructionProto) -> Iterator[str]:
    yield f"delta={made.delta}"


def _fft(made: HloInstructionProto) -> Iterator[str]:
    from peakline.schema import FftType

    yield f"fft_type={FftType.Name(made.fft_type)}"
    yield f"fft_length={braced(made.fft_length)}"


def _triangular(made: HloInstructionProto) -> Iterator[str]:
    from peakline.schema import TriangularSolveOptions

    options = made.triangular_solve_options
    for name in ("left_side", "lower", "unit_diagonal"):
        if getattr(options, name):
            yield f"{name}=true"
    if options.transpose_a:
        kind = TriangularSolveOptions.Transpose.Name(options.transpose_a)
        yield f"transpose_a={kind}"


def _cholesky(made: HloInstructionProto) -> Iterator[str]:
    if made.cholesky_options.lower:
        yield "lower=true"


def _reduce_precision(made: HloInstructionProto) -> Iterator[str]:
    yield f"exponent_bits={made.exponent_bits}"
    yield f"mantissa_bits={made.mantissa_bits}"


def _norm(made: HloInstructionProto) -> Iterator[str]:
    yield f"epsilon={made.epsilon:g}"
    yield f"feature_index={made.feature_index}"


def _copy_start(made: HloInstructionProto) -> Iterator[str]:
    if made.HasField("cross_program_prefetch_index"):
        yield f"cross_program_prefetch_index={made.cross_program_prefetch_index}"


def _topk(made: HloInstructionProto) -> Iterator[str]:
    yield f"k={made.k}"
    yield f"largest={'true' if made.largest else 'false'}"


def _call(made: HloInstructionProto) -> Iterator[str]:
    if made.is_composite:
        yield "is_composite=true"


def _each(names: str, of: Attributes) -> dict[str, Attributes]:
    return dict.fromkeys(names.split(), of)


_BY_OPCODE: dict[str, Attributes] = {
    **_each(
        "broadcast concatenate dynamic-reshape get-dimension-size map reduce reverse "
        "set-dimension-size transpose",
        _dimensions,
    ),
    **_each("all-reduce all-reduce-start", collective),
    **_each(
        "all-gather all-gather-start all-to-all reduce-scatter collective-broadcast "
        "ragged-all-to-all",
        gathering,
    ),
    **_each("collective-permute collective-permute-start", permute),
    **_each("send send-done recv recv-done", _transfer),
    **_each("reduce-window select-and-scatter", _reduce_window),
    **_each("batch-norm-training batch-norm-inference batch-norm-grad", _norm),
    "call": _call,
    "cholesky": _cholesky,
    "compare": _compare,
    "convolution": _convolution,
    "copy-start": _copy_start,
    "custom-call": _custom_call,
    "dot": _dot,
    "dynamic-slice": _dynamic_slice,
    "fft": _fft,
    "fusion": _fusion,
    "gather": _gather,
    "get-tuple-element": _tuple_element,
    "iota": _iota,
    "pad": _pad,
    "reduce-precision": _reduce_precision,
    "rng": _rng,
    "rng-bit-generator": _rng_bits,
    "rng-get-and-update-state": _rng_state,
    "scatter": _scatter,
    "slice": _slice,
    "sort": _sort,
    "topk": _topk,
    "triangular-solve": _triangular,
}
