"""Groups of devices and shardings as XLA writes them (``HloSharding``, ``TileAssignment``,
``NamedSharding``, ``ReplicaGroup``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from peakline import schema
from peakline.formats.hlo_proto.shapes import bounded_product, type_names
from peakline.hlo.printing.metadata import metadata_text
from peakline.hlo.printing.quoting import braced, check_items, listed
from peakline.hlo.printing.shapes import numbered

if TYPE_CHECKING:
    from peakline.schema import (
        AxisRefProto,
        HloInstructionProto,
        MeshProto,
        NamedShardingProto,
        OpMetadata,
        OpSharding,
        ShapeProto,
    )

_DEEPEST = 90
_WORDS = {
    "REPLICATED": "replicated",
    "MANUAL": "manual",
    "UNKNOWN": "unknown",
    "UNREDUCED": "unreduced",
    "MAXIMAL": "maximal",
}


@cache
def _types() -> dict[int, str]:
    return {number: name for name, number in schema.OpSharding.Type.items()}


def iota_text(sizes: Sequence[int], reshaped: Sequence[int], order: Sequence[int]) -> str:
    """Devices in the order of their numbers, reshaped, transposed and reshaped again."""
    reshaped, order = _shortest(list(reshaped), list(order))
    return f"[{listed(sizes)}]<={_turned(reshaped, order)}"


def _shortest(sizes: list[int], order: list[int]) -> tuple[list[int], list[int]]:
    """The same without dimensions of size one, and with those joined that stay side by side."""
    if sorted(order) != list(range(len(sizes))):
        return sizes, order
    while len(sizes) > 1:
        left = [place for place, size in enumerate(sizes) if size != 1]
        new = {old: place for place, old in enumerate(left)}
        sizes = [sizes[old] for old in left]
        order = [new[old] for old in order if old in new]
        base, is_changed = 0, False
        for place in range(1, len(order)):
            if order[place] == order[base] + place - base:
                sizes[order[base]] = bounded_product((sizes[order[base]], sizes[order[place]]))
                sizes[order[place]] = 1
                is_changed = True
            else:
                base = place
        if not is_changed:
            break
    return sizes or [1], order or [0]


def replica_groups(made: HloInstructionProto) -> str:
    """The groups of a collective, in whichever of the ways they are given."""
    chosen = made.WhichOneof("replica_group_list")
    if chosen == "mesh_axes_replica_group_list":
        given = made.mesh_axes_replica_group_list
        names = ",".join(_axis_names(given.axes, given.mesh))
        return f"{_mesh(given.mesh)} {{{names}}}"
    old = made.collective_device_list
    iota = None
    if chosen == "iota_collective_device_list":
        iota = made.iota_collective_device_list
    elif old.HasField("iota_replica_group_list"):
        iota = old.iota_replica_group_list
    if iota is not None:
        sizes = (iota.num_replica_groups, iota.num_devices_per_group)
        return iota_text(sizes, iota.iota_reshape_dims, iota.iota_transpose_perm)
    groups = old.replica_groups or made.replica_groups
    return braced(braced(group.replica_ids) for group in groups)


def sharding_text(
    sharding: OpSharding, shape: ShapeProto | None, *, with_metadata: bool, depth: int = 0
) -> str:
    """``{devices=[2,1]<=[2]}``; of a tuple one for each array where there is one for all."""
    kind = _types().get(sharding.type, "")
    if sharding.HasField("named_sharding"):
        text = _named(sharding.named_sharding, with_metadata=with_metadata)
    elif kind == "TUPLE":
        if depth >= _DEEPEST:
            return "{...}"
        parts = sharding.tuple_shardings
        texts = [
            sharding_text(part, None, with_metadata=with_metadata, depth=depth + 1)
            for part in parts
        ]
        return f"{{{numbered(texts)}}}"
    else:
        text = _of_array(sharding, kind, with_metadata=with_metadata)
    # What is said of a tuple as one holds for each of its arrays.
    if shape is not None and type_names().get(shape.element_type) == "tuple":
        return f"{{{numbered([text] * max(1, _leaves(shape)))}}}"
    return text


def _leaves(shape: ShapeProto) -> int:
    count, waiting = 0, [shape]
    while waiting:
        part = waiting.pop()
        if type_names().get(part.element_type) == "tuple":
            waiting.extend(part.tuple_shapes)
        else:
            count += 1
    return count


def _of_array(sharding: OpSharding, kind: str, *, with_metadata: bool) -> str:
    if kind == "OTHER":
        text = _tiles(sharding)
    elif kind == "MAXIMAL":
        text = f"maximal device={listed(sharding.tile_assignment_devices[:1])}"
    else:
        text = _WORDS.get(kind, "replicated")
    if sharding.is_shard_group:
        word = "shard_like" if sharding.shard_group_type else "shard_as"
        text += f" {word} {sharding.shard_group_id}"
    if with_metadata and sharding.metadata:
        text += f" metadata={{{_all_metadata(sharding.metadata)}}}"
    return f"{{{text}}}"


def _all_metadata(given: Sequence[OpMetadata]) -> str:
    if len(given) == 1:
        return metadata_text(given[0])
    return ", ".join(f"{{{metadata_text(one)}}}" for one in given)


def _tiles(sharding: OpSharding) -> str:
    sizes = sharding.tile_assignment_dimensions
    if sharding.iota_reshape_dims:
        order = sharding.iota_transpose_perm
        text = f"devices={iota_text(sizes, sharding.iota_reshape_dims, order)}"
    else:
        text = f"devices=[{listed(sizes)}]{listed(sharding.tile_assignment_devices)}"
    if sharding.replicate_on_last_tile_dim:
        text += " last_tile_dim_replicate"
    if sharding.last_tile_dims:
        words = (
            _WORDS.get(_types().get(one, ""), "error_type.") for one in sharding.last_tile_dims
        )
        text += f" last_tile_dims={{{', '.join(words)}}}"
    return text


def _named(given: NamedShardingProto, *, with_metadata: bool) -> str:
    mesh = given.mesh
    more = ""
    if with_metadata and given.metadata:
        texts = ", ".join(f"{{{metadata_text(one)}}}" for one in given.metadata)
        more = f", metadata={{{texts}}}"
    if not mesh.axes and mesh.device_ids:
        return f"{{{_mesh(mesh)}{more}}}"
    if not given.dim_shardings and (whole := _whole(given)):
        return f"{{{_mesh(mesh)}, {whole}{more}}}"
    parts = []
    for one in given.dim_shardings:
        names = _axis_names(one.axes, mesh)
        parts.append(f"{{{', '.join(names if one.is_closed else [*names, '?'])}}}")
    text = f"{_mesh(mesh)}, [{', '.join(parts)}]"
    for word, axes in (
        ("replicated=", given.replicated_axes),
        (f"unreduced={_reduction(given)}", given.unreduced_axes),
        ("manual=", given.manual_axes),
    ):
        text += _axes(word, axes, mesh)
    return f"{{{text}{more}}}"


def _whole(given: NamedShardingProto) -> str:
    """The word where all axes of the mesh are of one kind, or none is named."""
    kinds = (given.replicated_axes, given.unreduced_axes, given.manual_axes)
    named = [kind for kind in kinds if kind]
    if not named:
        return "replicated"
    axes = named[0]
    is_all = len(named) == 1 and [one.mesh_axis_index for one in axes] == list(
        range(len(given.mesh.axes))
    )
    if not is_all or any(one.HasField("sub_axis_info") for one in axes):
        return ""
    if given.manual_axes:
        return "manual"
    if given.unreduced_axes:
        reduction = _reduction(given)
        return f"unreduced={reduction}" if reduction else "unreduced"
    return ""


def _reduction(given: NamedShardingProto) -> str:
    """How what is not reduced will be, where it is not by adding."""
    if not given.reduction_op:
        return ""
    names = {number: name for name, number in given.ReductionOpProto.items()}
    return names.get(given.reduction_op, str(given.reduction_op)).lower()


def _axes(word: str, axes: Iterable[AxisRefProto], mesh: MeshProto) -> str:
    names = ", ".join(_axis_names(axes, mesh))
    return f", {word}{{{names}}}" if names else ""


def _axis_names(axes: Iterable[AxisRefProto], mesh: MeshProto) -> list[str]:
    known = [f"'{axis.name}'" for axis in mesh.axes]
    places = [axis.mesh_axis_index for axis in axes]
    names = [known[place] if 0 <= place < len(known) else str(place) for place in places]
    check_items(names)
    parts = [axis.sub_axis_info if axis.HasField("sub_axis_info") else None for axis in axes]
    return [
        name if part is None else f"{name}:({part.pre_size}){part.size}"
        for name, part in zip(names, parts, strict=True)
    ]


def _mesh(mesh: MeshProto) -> str:
    if not mesh.axes and mesh.device_ids:
        return f"single_device[device_id={mesh.device_ids[0]}]"
    names = ",".join(f"'{axis.name}'={axis.size}" for axis in mesh.axes)
    ids = listed(mesh.device_ids)
    if not ids and mesh.HasField("iota_transform"):
        turned = mesh.iota_transform
        sizes, order = _shortest(list(turned.reshape_dims), list(turned.transpose_perm))
        ids = _turned(sizes, order) if len(sizes) > 1 else ""
    return f"mesh[{names}], device_ids=({ids})" if ids else f"mesh[{names}]"


def _turned(sizes: Sequence[int], order: Sequence[int]) -> str:
    return f"[{listed(sizes)}]T({listed(order)})" if len(sizes) > 1 else f"[{listed(sizes)}]"
