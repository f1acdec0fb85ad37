"""The private descriptor pool and the ways to look things up in it.

Everything here lives in a pool of its own. The same full names may therefore exist in the
default pool too, registered by TensorFlow, TensorBoard or another package of the same
process, without either side seeing the other. The price: messages of the two pools are
different classes, to be exchanged as bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor
    from google.protobuf.message import Message

_PACKAGE = "peakline.schema"


def _load() -> tuple[DescriptorPool, dict[str, Descriptor | EnumDescriptor]]:
    """The pool of all shipped files, and their top-level messages and enums by short name.

    The names of the ``google`` packages are left out. No two packages share a short name;
    scripts/generate_schema.py refuses to make descriptors where they do.
    """
    pool = DescriptorPool()
    names: dict[str, Descriptor | EnumDescriptor] = {}
    data = Path(__file__).with_name("descriptors.binpb").read_bytes()
    for file in FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
        if not file.package.startswith("google."):
            added = pool.FindFileByName(file.name)
            names |= added.message_types_by_name
            names |= added.enum_types_by_name
    return pool, names


# Loaded on import, which the import system runs once however many threads ask: a second pool
# would have second, incompatible classes.
POOL, SHORT_NAMES = _load()


def descriptor(full_name: str) -> Descriptor:
    """The descriptor of a message, nested ones included (``tensorflow.AttrValue.ListValue``).

    Raises ``KeyError`` if there is no such message.
    """
    return POOL.FindMessageTypeByName(full_name)


def message(full_name: str) -> type[Message]:
    """The class of a message by its full name, which is the one used upstream.

    Raises ``KeyError`` if there is no such message.
    """
    return _message_class(descriptor(full_name))


def service(full_name: str) -> ServiceDescriptor:
    """The descriptor of a gRPC service (``tensorflow.ProfileAnalysis``).

    Raises ``KeyError`` if there is no such service.
    """
    return POOL.FindServiceByName(full_name)


def by_short_name(name: str) -> type[Message] | EnumTypeWrapper:
    """The message class or enum of a top-level name. Raises ``KeyError`` if there is none."""
    entry = SHORT_NAMES[name]
    return EnumTypeWrapper(entry) if isinstance(entry, EnumDescriptor) else _message_class(entry)


def _message_class(entry: Descriptor) -> type[Message]:
    """The class, which the protobuf runtime makes once per descriptor.

    The runtime gives it no module; with this one its messages can be pickled. The runtime
    written in Python also leaves out the classes of nested messages.
    """
    made = GetMessageClass(entry)
    if SHORT_NAMES.get(entry.name) is entry:
        made.__module__ = _PACKAGE
    for nested in entry.nested_types:
        if not hasattr(made, nested.name):
            setattr(made, nested.name, _message_class(nested))
    return made
