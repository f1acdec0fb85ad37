"""A message type with every kind of field, for what no real schema of profiles has."""

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

_FD = FieldDescriptorProto

SCALARS = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in _FD.Type.items()
    if name not in {"TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM"}
}
"""Field type by the name it has in a .proto file: each is a field of `ZOO` of that name, and a
repeated one of that name with ``_list`` behind it."""


def _field(message: DescriptorProto, name: str, kind: int, *, repeated: bool = False) -> _FD:
    label = _FD.LABEL_REPEATED if repeated else _FD.LABEL_OPTIONAL
    return message.field.add(name=name, number=(1 + len(message.field)), label=label, type=kind)


def _message(
    message: DescriptorProto,
    name: str,
    kind: str,
    *,
    repeated: bool = False,
    oneof: int | None = None,
) -> None:
    made = _field(message, name, _FD.TYPE_MESSAGE, repeated=repeated)
    made.type_name = f".zoo.{kind}"
    if oneof is not None:
        made.oneof_index = oneof


def _map(message: DescriptorProto, name: str, key: int, value: int | str) -> None:
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    _field(entry, "key", key)
    if isinstance(value, str):
        _message(entry, "value", value)
    else:
        _field(entry, "value", value)
    _message(message, name, f"{message.name}.{entry.name}", repeated=True)


def _build() -> Descriptor:
    file = FileDescriptorProto(name="zoo.proto", package="zoo", syntax="proto3")
    color = file.enum_type.add(name="Color")
    for number, name in enumerate(("RED", "GREEN")):
        color.value.add(name=name, number=number)
    leaf = file.message_type.add(name="Leaf")
    _field(leaf, "id", _FD.TYPE_INT64)
    _field(leaf, "name", _FD.TYPE_STRING)
    _field(leaf, "many", _FD.TYPE_SINT32, repeated=True)

    # Recursion in every way: repeated, singular, through a map, through another message.
    tree = file.message_type.add(name="Tree")
    _field(tree, "id", _FD.TYPE_SINT64)
    _message(tree, "leaf", "Leaf")
    _message(tree, "left", "Tree")
    _message(tree, "kids", "Tree", repeated=True)
    _message(tree, "more", "Tree", repeated=True)
    _map(tree, "named", _FD.TYPE_STRING, "Tree")
    _message(tree, "leaves", "Leaf", repeated=True)

    zoo = file.message_type.add(name="Zoo")
    for name, kind in SCALARS.items():
        _field(zoo, name, kind)
    for name, kind in SCALARS.items():
        _field(zoo, f"{name}_list", kind, repeated=True)
    for name, repeated in (("color", False), ("color_list", True)):
        _field(zoo, name, _FD.TYPE_ENUM, repeated=repeated).type_name = ".zoo.Color"
    zoo.oneof_decl.add(name="pick")
    for name in ("sint64", "float", "double", "bool", "string", "fixed32", "uint64"):
        _field(zoo, f"pick_{name}", SCALARS[name]).oneof_index = 0
    _message(zoo, "pick_leaf", "Leaf", oneof=0)
    _message(zoo, "pick_tree", "Tree", oneof=0)
    _message(zoo, "leaf", "Leaf")
    _message(zoo, "leaves", "Leaf", repeated=True)
    _message(zoo, "tree", "Tree")
    _message(zoo, "trees", "Tree", repeated=True)
    _map(zoo, "numbers", _FD.TYPE_SINT32, _FD.TYPE_DOUBLE)
    _map(zoo, "zoos", _FD.TYPE_UINT64, "Zoo")
    _message(zoo, "zoo", "Zoo")
    _field(zoo, "maybe", _FD.TYPE_INT32).proto3_optional = True
    zoo.field[-1].oneof_index = 1
    zoo.oneof_decl.add(name="_maybe")
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindMessageTypeByName("zoo.Zoo")


ZOO = _build()
