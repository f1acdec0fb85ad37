"""What XLA writes of instructions that are about dimensions: windows, convolutions, products,
gathers (``xla/hlo/ir/hlo_instructions.cc``, ``window_util::ToString``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import TYPE_CHECKING

from peakline.hlo.printing.quoting import braced

if TYPE_CHECKING:
    from peakline.schema import (
        ConvolutionDimensionNumbers,
        DotDimensionNumbers,
        HloInstructionProto,
        ShapeProto,
        Window,
    )

Attributes = Callable[["HloInstructionProto", Sequence["ShapeProto"]], Iterator[str]]
"""Yields attributes of an instruction, whose operands have these shapes."""


def window_text(window: Window) -> str:
    """``size=3x3 stride=2x2 pad=1_1x1_1``: what differs from a plain window."""
    sizes = window.dimensions
    if not sizes:
        return ""
    parts = [f"size={'x'.join(str(one.size) for one in sizes)}"]
    if any(one.stride != 1 for one in sizes):
        parts.append(f"stride={'x'.join(str(one.stride) for one in sizes)}")
    if any(one.padding_low or one.padding_high for one in sizes):
        pads = (f"{one.padding_low}_{one.padding_high}" for one in sizes)
        parts.append(f"pad={'x'.join(pads)}")
    if any(one.base_dilation != 1 for one in sizes):
        parts.append(f"lhs_dilate={'x'.join(str(one.base_dilation) for one in sizes)}")
    if any(one.window_dilation != 1 for one in sizes):
        parts.append(f"rhs_dilate={'x'.join(str(one.window_dilation) for one in sizes)}")
    if any(one.window_reversal for one in sizes):
        parts.append(f"rhs_reversal={'x'.join('01'[one.window_reversal] for one in sizes)}")
    return " ".join(parts)


def labels_text(numbers: ConvolutionDimensionNumbers) -> str:
    """``b01f_01io->b01f``: where each dimension lies in the input, the kernel and the output."""
    image = _label(
        ("b", numbers.input_batch_dimension),
        ("f", numbers.input_feature_dimension),
        places=numbers.input_spatial_dimensions,
    )
    kernel = _label(
        ("i", numbers.kernel_input_feature_dimension),
        ("o", numbers.kernel_output_feature_dimension),
        places=numbers.kernel_spatial_dimensions,
    )
    output = _label(
        ("b", numbers.output_batch_dimension),
        ("f", numbers.output_feature_dimension),
        places=numbers.output_spatial_dimensions,
    )
    return f"{image}_{kernel}->{output}"


def _label(*named: tuple[str, int], places: Sequence[int]) -> str:
    letters = ["?"] * (len(places) + 2)
    for name, place in (*named, *((str(number), place) for number, place in enumerate(places))):
        if 0 <= place < len(letters):
            letters[place] = name
    return "".join(letters)


def precision(made: HloInstructionProto, operands: int) -> Iterator[str]:
    """Of each operand, where that of one is not the default, and the algorithm."""
    config = made.precision_config
    given = list(config.operand_precision)[:operands]
    if any(given):
        given += [0] * (operands - len(given))
        names = {number: name for name, number in config.Precision.items()}
        words = (names.get(one, str(one)).lower() for one in given)
        yield f"operand_precision={braced(words)}"
    if config.algorithm:
        known = config.Algorithm.values()
        name = config.Algorithm.Name(config.algorithm) if config.algorithm in known else ""
        yield f"algorithm={name.removeprefix('ALG_').lower() or config.algorithm}"


def _convolution(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    if made.window.dimensions:
        yield f"window={{{window_text(made.window)}}}"
    yield f"dim_labels={labels_text(made.convolution_dimension_numbers)}"
    yield from group_counts(made)
    yield from precision(made, len(operands))


def group_counts(made: HloInstructionProto) -> Iterator[str]:
    """Of a convolution in groups their numbers."""
    if made.feature_group_count > 1:
        yield f"feature_group_count={made.feature_group_count}"
    if made.batch_group_count > 1:
        yield f"batch_group_count={made.batch_group_count}"


def _window(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    if made.window.dimensions:
        yield f"window={{{window_text(made.window)}}}"


def _pad(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    sizes = [
        (one.edge_padding_low, one.edge_padding_high, one.interior_padding)
        for one in made.padding_config.dimensions
    ]
    form = "{}_{}_{}" if any(one[2] for one in sizes) else "{}_{}"
    yield f"padding={'x'.join(starmap(form.format, sizes))}"


def _gather(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    numbers = made.gather_dimension_numbers
    parts = [
        f"offset_dims={braced(numbers.offset_dims)}",
        f"collapsed_slice_dims={braced(numbers.collapsed_slice_dims)}",
        f"start_index_map={braced(numbers.start_index_map)}",
    ]
    if numbers.operand_batching_dims:
        parts.append(f"operand_batching_dims={braced(numbers.operand_batching_dims)}")
    if numbers.start_indices_batching_dims:
        parts.append(f"start_indices_batching_dims={braced(numbers.start_indices_batching_dims)}")
    yield ", ".join([*parts, f"index_vector_dim={numbers.index_vector_dim}"])
    yield f"slice_sizes={braced(made.gather_slice_sizes)}"
    if made.indices_are_sorted:
        yield "indices_are_sorted=true"


def _scatter(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    numbers = made.scatter_dimension_numbers
    parts = [
        f"update_window_dims={braced(numbers.update_window_dims)}",
        f"inserted_window_dims={braced(numbers.inserted_window_dims)}",
        f"scatter_dims_to_operand_dims={braced(numbers.scatter_dims_to_operand_dims)}",
    ]
    if numbers.input_batching_dims:
        parts.append(f"input_batching_dims={braced(numbers.input_batching_dims)}")
    if numbers.scatter_indices_batching_dims:
        batching = braced(numbers.scatter_indices_batching_dims)
        parts.append(f"scatter_indices_batching_dims={batching}")
    yield ", ".join([*parts, f"index_vector_dim={numbers.index_vector_dim}"])
    if made.indices_are_sorted:
        yield "indices_are_sorted=true"
    if made.unique_indices:
        yield "unique_indices=true"


def _dot_numbers(numbers: DotDimensionNumbers) -> str:
    parts = []
    if numbers.lhs_batch_dimensions:
        parts.append(f"lhs_batch_dims={braced(numbers.lhs_batch_dimensions)}")
    parts.append(f"lhs_contracting_dims={braced(numbers.lhs_contracting_dimensions)}")
    if numbers.rhs_batch_dimensions:
        parts.append(f"rhs_batch_dims={braced(numbers.rhs_batch_dimensions)}")
    parts.append(f"rhs_contracting_dims={braced(numbers.rhs_contracting_dimensions)}")
    return ", ".join(parts)


def _dot(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
    yield _dot_numbers(made.dot_dimension_numbers)
    yield from precision(made, 2 if made.opcode == "scaled-dot" else len(operands))


def _ragged_dot(made: HloInstructionProto, _operands: Sequence[ShapeProto]) -> Iterator[str]:
    numbers = made.ragged_dot_dimension_numbers
    yield _dot_numbers(numbers.dot_dimension_numbers)
    yield f"lhs_ragged_dims={braced(numbers.lhs_ragged_dimensions)}"
    if numbers.rhs_group_dimensions:
        yield f"rhs_group_dims={braced(numbers.rhs_group_dimensions)}"
    yield from precision(made, 2)


DIMENSIONS: Mapping[str, Attributes] = {
    "convolution": _convolution,
    "reduce-window": _window,
    "select-and-scatter": _window,
    "pad": _pad,
    "gather": _gather,
    "scatter": _scatter,
    "dot": _dot,
    "scaled-dot": _dot,
    "ragged-dot": _ragged_dot,
}
"""By opcode."""
