"""The attributes of collectives as XLA writes them (``xla/hlo/ir/hlo_instructions.cc``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from peakline.hlo.braces import braced

if TYPE_CHECKING:
    from peakline.schema import (
        HloInstructionProto,
        MeshAxesReplicaGroupListProto,
        ReplicaGroup,
    )


def collective(made: HloInstructionProto) -> Iterator[str]:
    """The attributes of a reduction over devices."""
    if made.channel_id > 0:
        yield f"channel_id={made.channel_id}"
    yield f"replica_groups={_replica_groups(made)}"
    if made.constrain_layout:
        yield "constrain_layout=true"
    if made.use_global_device_ids:
        yield "use_global_device_ids=true"


def gathering(made: HloInstructionProto) -> Iterator[str]:
    """A collective that puts parts together along a dimension, or takes them apart."""
    listed = list(collective(made))
    place = 1 + next(n for n, text in enumerate(listed) if text.startswith("replica_groups="))
    yield from listed[:place]
    if made.opcode != "reduce-scatter" and made.dimensions:
        yield f"dimensions={braced(made.dimensions)}"
    rest = listed[place:]
    if made.opcode == "reduce-scatter":
        yield from rest
        yield f"dimensions={braced(made.dimensions)}"
    else:
        yield from rest


def _replica_groups(made: HloInstructionProto) -> str:
    listed = made.collective_device_list
    iota = made.iota_collective_device_list
    if listed.HasField("iota_replica_group_list"):
        iota = listed.iota_replica_group_list
    if iota.num_replica_groups:
        text = f"[{iota.num_replica_groups},{iota.num_devices_per_group}]"
        text += f"<=[{','.join(map(str, iota.iota_reshape_dims))}]"
        if len(iota.iota_transpose_perm) > 1:
            text += f"T({','.join(map(str, iota.iota_transpose_perm))})"
        return text
    if made.mesh_axes_replica_group_list.axes:
        return _mesh_groups(made.mesh_axes_replica_group_list)
    groups: Iterable[ReplicaGroup] = made.replica_groups or listed.replica_groups
    return braced(braced(group.replica_ids) for group in groups)


def _mesh_groups(groups: MeshAxesReplicaGroupListProto) -> str:
    mesh = groups.mesh
    sizes = ",".join(f"'{axis.name}'={axis.size}" for axis in mesh.axes)
    names = []
    for axis in groups.axes:
        place = axis.mesh_axis_index
        name = mesh.axes[place].name if 0 <= place < len(mesh.axes) else ""
        part = axis.sub_axis_info
        more = f":({part.pre_size}){part.size}" if axis.HasField("sub_axis_info") else ""
        names.append(f"'{name}'{more}")
    return f"mesh[{sizes}] {braced(names)}"


def permute(made: HloInstructionProto) -> Iterator[str]:
    """Those of an exchange between pairs of devices."""
    if made.channel_id > 0:
        yield f"channel_id={made.channel_id}"
    pairs = [braced((pair.source, pair.target)) for pair in made.source_target_pairs]
    yield f"source_target_pairs={braced(pairs)}"
