"""Attributes of instructions, each as the fields of HloInstructionProto that it stands for.

The syntax is that of ``HloInstruction::PrintExtraAttributes`` and of ``ParseAttributeHelper`` of
XLA's parser (``xla/hlo/ir`` and ``xla/hlo/parser`` in openxla/xla). What a reader raises ValueError
for is no value of its attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial

from peakline.formats.hlo_text.packing import Value, enum_numbers, pack
from peakline.formats.hlo_text.scan import items, unquoted
from peakline.formats.hlo_text.shapes import Shapes

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
        return _integer(value)
    if name in {b"left_side", b"unit_diagonal", b"lower"}:
        return _truth(value)
    if name == b"transpose_a":
        return _enum("xla.TriangularSolveOptions", "transpose_a", value.decode())
    if name == b"operand_precision":
        levels = (one.decode().upper() for one in _braced(value))
        return [_enum("xla.PrecisionConfig", "operand_precision", level) for level in levels]
    if name == b"algorithm":
        return _enum("xla.PrecisionConfig", "algorithm", f"ALG_{value.decode().upper()}")
    return _integers(value)


def _braced(value: bytes) -> list[bytes]:
    if value[:1] != b"{" or value[-1:] != b"}":
        raise ValueError(value)
    return list(items(value[1:-1]))


def _integer(value: bytes) -> int:
    if not _INTEGER.fullmatch(value) or not -_MOST <= int(value) < _MOST:
        raise ValueError(value[:40])
    return int(value)


_INTEGER = re.compile(rb"-?\d{1,19}")
_MOST = 2**63


def _enum(full_name: str, field: str, name: str) -> int:
    numbers = enum_numbers(full_name, field)
    if name not in numbers:
        raise ValueError(name[:40])
    return numbers[name]


def _integers(value: bytes) -> list[Value]:
    return [_integer(one) for one in _braced(value)]


def _truth(value: bytes) -> bool:
    if value not in {b"true", b"false"}:
        raise ValueError(value[:40])
    return value == b"true"


def _truths(value: bytes) -> list[Value]:
    return [_truth(one) for one in (_braced(value) if value[:1] == b"{" else [value])]


def _text(value: bytes) -> bytes:
    return unquoted(value)


def _word(value: bytes) -> str:
    return value.decode()


def _prefixed(prefix: str, value: bytes) -> str:
    return prefix + value.decode().upper()


# Values with a syntax of their own.


def slices(value: bytes) -> list[Value]:
    """``{[0:8], [0:8:2]}``: start, limit and stride of each dimension."""
    found: list[Value] = []
    for one in _braced(value):
        numbers = [_integer(part) for part in one[1:-1].split(b":")]
        if one[:1] != b"[" or one[-1:] != b"]" or len(numbers) not in {2, 3}:
            raise ValueError(one)
        stride = numbers[2] if len(numbers) == 3 else 1
        found.append({"start": numbers[0], "limit": numbers[1], "stride": stride})
    return found


_WINDOW = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def window(value: bytes) -> Mapping[str, Value]:
    """``{size=3x3 stride=2x2 pad=0_1x0_1}``: by dimension, what is not said being 1 or nothing."""
    said: dict[str, list[bytes]] = {}
    for one in value[1:-1].split():
        name, _, numbers = one.decode().partition("=")
        if name not in _WINDOW:
            raise ValueError(one)
        said[name] = numbers.encode().split(b"x")
    rank = len(said.get("size", ()))
    if any(len(numbers) != rank for numbers in said.values()):
        raise ValueError(value[:40])
    rows: list[Value] = []
    for at in range(rank):
        low, _, high = said["pad"][at].partition(b"_") if "pad" in said else (b"0", b"", b"0")
        one_of = {name: said[name][at] if name in said else b"1" for name in _WINDOW}
        rows.append(
            {
                "size": _integer(one_of["size"]),
                "stride": _integer(one_of["stride"]),
                "padding_low": _integer(low),
                "padding_high": _integer(high),
                "window_dilation": _integer(one_of["rhs_dilate"]),
                "base_dilation": _integer(one_of["lhs_dilate"]),
                "window_reversal": "rhs_reversal" in said and one_of["rhs_reversal"] == b"1",
            }
        )
    return {"dimensions": rows}


def padding(value: bytes) -> Mapping[str, Value]:
    """``0_1x2_3_1``: by dimension the padding before, behind and between elements."""
    rows: list[Value] = []
    for one in value.split(b"x"):
        low, high, *between = (_integer(part) for part in one.split(b"_"))
        rows.append(
            {
                "edge_padding_low": low,
                "edge_padding_high": high,
                "interior_padding": between[0] if between else 0,
            }
        )
    return {"dimensions": rows}


_LABELS = re.compile(rb"([\dbf?]+)_([\dio?]+)->([\dbf?]+)")


def convolution(value: bytes) -> Mapping[str, Value]:
    """``b01f_01io->b01f``: where batch, features and the spatial dimensions lie."""
    found = _LABELS.fullmatch(value)
    if found is None:
        raise ValueError(value[:40])
    fields: dict[str, Value] = {}
    sides = (("input", "b", "f"), ("kernel", "i", "o"), ("output", "b", "f"))
    names = {"b": "batch_dimension", "f": "feature_dimension", "i": "input_feature_dimension",
             "o": "output_feature_dimension"}  # fmt: skip
    for (side, *letters), labels in zip(sides, found.groups(), strict=True):
        text = labels.decode()
        for letter in letters:
            fields[f"{side}_{names[letter]}"] = text.index(letter)
        spatial = sum(one.isdigit() for one in text)
        fields[f"{side}_spatial_dimensions"] = [text.index(str(one)) for one in range(spatial)]
    return fields


_IOTA = re.compile(rb"\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(rb"@?mesh\[([^\]]*)\](?:,?\s*device_ids=\(([^)]*)\))?\s*\{([^}]*)\}")
_AXIS = re.compile(rb"'((?:[^'\\]|\\.)*)'=(\d+)")
_AXIS_USE = re.compile(rb"'((?:[^'\\]|\\.)*)'(?::\((\d+)\)(\d+))?")


def replica_groups(value: bytes) -> Mapping[str, Value]:
    """Groups one by one, ``{{0,1},{2,3}}``; ``[2,4]<=[8]``; or along axes of a mesh."""
    if value[:1] == b"{":
        groups: list[Value] = [{"replica_ids": _integers(one)} for one in _braced(value)]
        return {"collective_device_list": {"replica_groups": groups}} if groups else {}
    iota = _IOTA.fullmatch(value)
    if iota is not None:
        count, size, dims, order = iota.groups()
        shape = [_integer(one) for one in dims.split(b",")]
        turned = [_integer(one) for one in order.split(b",")] if order else list(range(len(shape)))
        return {
            "iota_collective_device_list": {
                "num_replica_groups": _integer(count),
                "num_devices_per_group": _integer(size),
                "iota_reshape_dims": [*shape],
                "iota_transpose_perm": [*turned],
            }
        }
    mesh = _MESH.fullmatch(value)
    if mesh is None:
        raise ValueError(value[:40])
    axes = _AXIS.findall(mesh[1])
    places = {name: at for at, (name, _) in enumerate(axes)}
    used: list[Value] = []
    for name, before, size in _AXIS_USE.findall(mesh[3]):
        if name not in places:
            raise ValueError(name)
        part: dict[str, Value] = {"mesh_axis_index": places[name]}
        if size:
            part["sub_axis_info"] = {"pre_size": _integer(before), "size": _integer(size)}
        used.append(part)
    return {
        "mesh_axes_replica_group_list": {
            "mesh": {"axes": [{"name": name, "size": _integer(size)} for name, size in axes]},
            "axes": used,
        }
    }


def pairs(value: bytes) -> list[Value]:
    """``{{0,1},{1,0}}``: who sends to whom."""
    found: list[Value] = []
    for one in _braced(value):
        source, target = _integers(one)
        found.append({"source": source, "target": target})
    return found


_ALIAS = re.compile(
    rb"(\{[\d,\s]*\})\s*:\s*\(?\s*(\d+)(?:\s*,\s*(\{[\d,\s]*\}))?"
    rb"(?:\s*,\s*([\w-]+))?\s*\)?"
)


def aliases(value: bytes) -> list[tuple[list[Value], int, list[Value], bytes]]:
    """``{ {0}: (1, {}, may-alias) }``: output's index, number and index of what it shares, how."""
    found = []
    for one in _braced(value):
        parts = _ALIAS.fullmatch(one)
        if parts is None:
            raise ValueError(one[:40])
        index, number, inner, kind = parts.groups()
        found.append((_integers(index), _integer(number), _integers(inner or b"{}"), kind or b""))
    return found


def _output_aliasing(value: bytes) -> list[Value]:
    return [
        {"output_shape_index": output, "operand_index": number, "operand_shape_index": operand}
        for output, number, operand, _ in aliases(value)
    ]


def frontend(value: bytes) -> Mapping[str, Value]:
    """``{a="1",b={...}}``: names and texts."""
    entries: list[Value] = []
    for one in _braced(value):
        name, equals, text = one.partition(b"=")
        if not equals:
            raise ValueError(one[:40])
        entries.append({"key": unquoted(name.strip()), "value": unquoted(text.strip())})
    return {"map": entries}


def _constraints(value: bytes) -> dict[str, Value]:
    shapes = Shapes()
    return {
        "constrain_layout": 1,
        "operand_shapes_with_layout": [shapes.of(one) for one in _braced(value)],
    }


def _replication(value: bytes) -> dict[str, Value]:
    return {"parameter_replication": {"replicated_at_leaf_buffers": _truths(value)}}


def _one(field: str, read: Callable[[bytes], Value]) -> Callable[[bytes], Mapping[str, Value]]:
    return lambda value: {field: read(value)}


@cache
def _readers() -> Mapping[bytes, Callable[[bytes], Mapping[str, Value]]]:
    plain: dict[str, Callable[[bytes], Value]] = {
        "dimensions": _integers, "fft_length": _integers, "dynamic_slice_sizes": _integers,
        "slice_sizes": _integers, "channel_id": _integer, "all_reduce_id": _integer,
        "feature_group_count": _integer, "batch_group_count": _integer, "k": _integer,
        "exponent_bits": _integer, "mantissa_bits": _integer, "feature_index": _integer,
        "num_carries": _integer, "delta": _integer, "cross_program_prefetch_index": _integer,
        "epsilon": float, "use_global_device_ids": _truth, "is_host_transfer": _truth,
        "is_stable": _truth, "constrain_layout": _truth, "custom_call_has_side_effect": _truth,
        "indices_are_sorted": _truth, "unique_indices": _truth, "largest": _truth,
        "is_reverse": _truth, "is_composite": _truth, "custom_call_target": _text,
        "infeed_config": _text, "outfeed_config": _text, "backend_config": _text,
        "async_execution_thread": _text, "fft_type": _word, "padding_type": _word,
        "outfeed_shape": lambda value: Shapes().of(value), "frontend_attributes": frontend,
        "window": window, "source_target_pairs": pairs,
        "is_cross_program_prefetch": _truth,
    }  # fmt: skip
    renamed: dict[str, tuple[str, Callable[[bytes], Value]]] = {
        "index": ("tuple_index", _integer), "direction": ("comparison_direction", _word),
        "type": ("comparison_type", _word), "order": ("comparison_order", _word),
        "kind": ("fusion_kind", _word), "slice": ("slice_dimensions", slices),
        "padding": ("padding_config", padding), "api_version": ("custom_call_api_version", _word),
        "dim_labels": ("convolution_dimension_numbers", convolution),
        "iota_dimension": ("dimensions", lambda value: [_integer(value)]),
        "schedule": ("custom_call_schedule", _word),
        "output_to_operand_aliasing": ("output_operand_aliasing", _output_aliasing),
        "distribution": ("distribution", partial(_prefixed, "")),
        "conv_kind": ("conv_kind", partial(_prefixed, "CONVOLUTION_KIND_")),
        "is_associative": ("is_associative",
                           lambda value: "TRI_STATE_TRUE" if _truth(value) else "TRI_STATE_FALSE"),
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
        return pack(INSTRUCTION, {by_opcode: _integers(value)})
    if name == b"slice_sizes":
        # Of combined collective permutes: a list for each.
        flat = [size for one in _braced(value) for size in _integers(one)]
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
    from peakline import schema

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
