"""Attributes of instructions, each as the fields of HloInstructionProto that it stands for.

The syntax is that of ``HloInstruction::PrintExtraAttributes`` and of ``ParseAttributeHelper`` of
XLA's parser (``xla/hlo/ir`` and ``xla/hlo/parser`` in openxla/xla). What a reader raises ValueError
for is no value of its attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from peakline import schema
from peakline.formats.hlo_text.packing import Value, enum_numbers, pack
from peakline.formats.hlo_text.shapes import Shapes
from peakline.formats.hlo_text.values import (
    braced,
    convolution,
    enum,
    frontend,
    integer,
    integers,
    output_aliasing,
    padding,
    pairs,
    prefixed,
    replica_groups,
    slices,
    text,
    truth,
    truths,
    window,
    word,
)

INSTRUCTION = "xla.HloInstructionProto"

CALLS = {
    b"calls": 0, b"to_apply": 0, b"body": 0, b"condition": 1, b"true_computation": 0,
    b"false_computation": 1, b"select": 0, b"scatter": 1, b"branch_computations": 0,
    b"called_computations": 0,
}  # fmt: skip
"""Attributes that name computations, and their places among those that an instruction calls."""

SKIPPED = frozenset(
    b"sharding origin statistics domain result_accuracy literal inferred_dimension mode "
    b"control-successors async_group_id cross_program_prefetches".split()
)
"""Known, and of no use to what reads programs here."""

_DIMENSIONS = {
    "dot": "dot_dimension_numbers", "gather": "gather_dimension_numbers",
    "scatter": "scatter_dimension_numbers",
}  # fmt: skip
PARTS: Mapping[bytes, tuple[str, str]] = {
    b"lhs_contracting_dims": (_DIMENSIONS["dot"], "lhs_contracting_dimensions"),
    b"rhs_contracting_dims": (_DIMENSIONS["dot"], "rhs_contracting_dimensions"),
    b"lhs_batch_dims": (_DIMENSIONS["dot"], "lhs_batch_dimensions"),
    b"rhs_batch_dims": (_DIMENSIONS["dot"], "rhs_batch_dimensions"),
    b"lhs_ragged_dims": ("ragged_dot_dimension_numbers", "lhs_ragged_dimensions"),
    b"rhs_group_dims": ("ragged_dot_dimension_numbers", "rhs_group_dimensions"),
    b"offset_dims": (_DIMENSIONS["gather"], "offset_dims"),
    b"collapsed_slice_dims": (_DIMENSIONS["gather"], "collapsed_slice_dims"),
    b"start_index_map": (_DIMENSIONS["gather"], "start_index_map"),
    b"operand_batching_dims": (_DIMENSIONS["gather"], "operand_batching_dims"),
    b"start_indices_batching_dims": (_DIMENSIONS["gather"], "start_indices_batching_dims"),
    b"index_vector_dim": ("*", "index_vector_dim"),
    b"update_window_dims": (_DIMENSIONS["scatter"], "update_window_dims"),
    b"inserted_window_dims": (_DIMENSIONS["scatter"], "inserted_window_dims"),
    b"scatter_dims_to_operand_dims": (_DIMENSIONS["scatter"], "scatter_dims_to_operand_dims"),
    b"input_batching_dims": (_DIMENSIONS["scatter"], "input_batching_dims"),
    b"scatter_indices_batching_dims": (_DIMENSIONS["scatter"], "scatter_indices_batching_dims"),
    b"left_side": ("triangular_solve_options", "left_side"),
    b"unit_diagonal": ("triangular_solve_options", "unit_diagonal"),
    b"transpose_a": ("triangular_solve_options", "transpose_a"),
    b"lower": ("*", "lower"),
    b"operand_precision": ("precision_config", "operand_precision"),
    b"algorithm": ("precision_config", "algorithm"),
}
"""Attributes of which several make one message: its field, and the field in it. With ``*`` it
depends on the opcode."""
_OWNERS = {
    b"scatter": _DIMENSIONS["scatter"], b"gather": _DIMENSIONS["gather"],
    b"triangular-solve": "triangular_solve_options", b"cholesky": "cholesky_options",
}  # fmt: skip


def owner_of(name: bytes, opcode: bytes) -> str:
    """The field of the message that the attribute ``name``, one of `PARTS`, is a part of."""
    owner = PARTS[name][0]
    if owner == "*":
        return _OWNERS.get(opcode, "")
    return owner


def part_value(name: bytes, value: bytes) -> Value:
    """The value of an attribute of `PARTS`."""
    if name == b"index_vector_dim":
        return integer(value)
    if name in {b"left_side", b"unit_diagonal", b"lower"}:
        return truth(value)
    if name == b"transpose_a":
        return enum("xla.TriangularSolveOptions", "transpose_a", value.decode())
    if name == b"operand_precision":
        levels = (one.decode().upper() for one in braced(value))
        return [enum("xla.PrecisionConfig", "operand_precision", level) for level in levels]
    if name == b"algorithm":
        return enum("xla.PrecisionConfig", "algorithm", f"ALG_{value.decode().upper()}")
    return integers(value)


def _constraints(value: bytes) -> dict[str, Value]:
    shapes = Shapes()
    return {
        "constrain_layout": 1,
        "operand_shapes_with_layout": [shapes.of(one) for one in braced(value)],
    }


def _replication(value: bytes) -> dict[str, Value]:
    return {"parameter_replication": {"replicated_at_leaf_buffers": truths(value)}}


def _one(field: str, read: Callable[[bytes], Value]) -> Callable[[bytes], Mapping[str, Value]]:
    return lambda value: {field: read(value)}


@cache
def _readers() -> Mapping[bytes, Callable[[bytes], Mapping[str, Value]]]:
    plain: dict[str, Callable[[bytes], Value]] = {
        "dimensions": integers, "fft_length": integers, "dynamic_slice_sizes": integers,
        "slice_sizes": integers, "channel_id": integer, "all_reduce_id": integer,
        "feature_group_count": integer, "batch_group_count": integer, "k": integer,
        "exponent_bits": integer, "mantissa_bits": integer, "feature_index": integer,
        "num_carries": integer, "delta": integer, "cross_program_prefetch_index": integer,
        "epsilon": float, "use_global_device_ids": truth, "is_host_transfer": truth,
        "is_stable": truth, "constrain_layout": truth, "custom_call_has_side_effect": truth,
        "indices_are_sorted": truth, "unique_indices": truth, "largest": truth,
        "is_reverse": truth, "is_composite": truth, "custom_call_target": text,
        "infeed_config": text, "outfeed_config": text, "backend_config": text,
        "async_execution_thread": text, "fft_type": word, "padding_type": word,
        "outfeed_shape": lambda value: Shapes().of(value), "frontend_attributes": frontend,
        "window": window, "source_target_pairs": pairs,
        "is_cross_program_prefetch": truth,
    }  # fmt: skip
    renamed: dict[str, tuple[str, Callable[[bytes], Value]]] = {
        "index": ("tuple_index", integer), "direction": ("comparison_direction", word),
        "type": ("comparison_type", word), "order": ("comparison_order", word),
        "kind": ("fusion_kind", word), "slice": ("slice_dimensions", slices),
        "padding": ("padding_config", padding), "api_version": ("custom_call_api_version", word),
        "dim_labels": ("convolution_dimension_numbers", convolution),
        "iota_dimension": ("dimensions", lambda value: [integer(value)]),
        "schedule": ("custom_call_schedule", word),
        "output_to_operand_aliasing": ("output_operand_aliasing", output_aliasing),
        "distribution": ("distribution", partial(prefixed, "")),
        "conv_kind": ("conv_kind", partial(prefixed, "CONVOLUTION_KIND_")),
        "is_associative": ("is_associative",
                           lambda value: "TRI_STATE_TRUE" if truth(value) else "TRI_STATE_FALSE"),
    }  # fmt: skip
    known = {name.encode(): _one(name, read) for name, read in plain.items()}
    known |= {name.encode(): _one(field, read) for name, (field, read) in renamed.items()}
    known[b"replica_groups"] = replica_groups
    known[b"operand_layout_constraints"] = _constraints
    known[b"parameter_replication"] = _replication
    return known


_BY_OPCODE = {
    (b"slice_sizes", b"gather"): "gather_slice_sizes",
    (b"algorithm", b"rng-bit-generator"): "rng_algorithm",
}


def fields_of(name: bytes, value: bytes, opcode: bytes) -> bytes | None:
    """The fields that an attribute stands for; None where no such attribute is known.

    Raises ValueError where the value is none of the attribute.
    """
    by_opcode = _BY_OPCODE.get((name, opcode))
    if by_opcode == "rng_algorithm":
        return pack(INSTRUCTION, {by_opcode: value.decode().upper()})
    if by_opcode:
        return pack(INSTRUCTION, {by_opcode: integers(value)})
    if name == b"slice_sizes":
        # Of combined collective permutes: a list for each.
        flat = [size for one in braced(value) for size in integers(one)]
        return pack(INSTRUCTION, {"dynamic_slice_sizes": flat})
    read = _readers().get(name)
    if read is None:
        return None
    fields = read(value)
    known = schema_fields()
    return pack(INSTRUCTION, {field: one for field, one in fields.items() if field in known})


def plain_names() -> frozenset[bytes]:
    """The attributes whose fields depend on nothing but their value."""
    return frozenset(_readers()) - {name for name, _ in _BY_OPCODE} - {b"async_execution_thread"}


@cache
def schema_fields() -> frozenset[str]:
    """The fields of an instruction that the schema has."""
    return frozenset(schema.shape(INSTRUCTION).fields_by_name)


@cache
def default_comparison(element_type: int) -> str:
    """How values of a type are compared where the text does not say
    (``Comparison::DefaultComparisonType`` in openxla/xla).
    """
    numbers = enum_numbers("xla.ShapeProto", "element_type")
    name = next((name for name, number in numbers.items() if number == element_type), "")
    if name.startswith(("F", "BF", "C")):
        return "FLOAT"
    return "UNSIGNED" if name.startswith(("U", "PRED")) else "SIGNED"
