"""Messages that are whole as messages and mean what no program means: fields by their schema."""

import struct
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from tests.sources.format_samples import Sample

from peakline import schema

_INTEGERS = (
    0, 1, 2, 3, 7, 63, 64, 127, 128, 255, 1000, 4095, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1,
    2**32, 2**40, 2**53 + 1, 2**62, 2**63 - 1,
)  # fmt: skip
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e18, 1e300, float("nan"), float("inf"), -1e19)
_TEXTS = (
    "", "x", "a/b/c", "/" * 40, "a" * 3000, "\0", "\n", "\x1b[31m", "é\u202e", "%s{0}", "1", "-1",
    "/host:CPU", "/device:GPU:0", "/device:TPU:0", "/host:metadata", "Task Environment", "Steps",
    "XLA Ops", "XLA Modules", "MemoryAllocation", "MemoryDeallocation", "allocator_name",
    "bytes_allocated", "requested_bytes", "peak_bytes_in_use", "address", "tf_op", "hlo_op",
    "hlo_module", "hlo_proto", "group_id", "correlation_id", "step_num", "train", "while", "fusion",
    "tuple", "parameter", "call", "f32[2,3]{1,0}", "$file.py:7 f", "ProfilerStep#1", "bytes",
    "space", "objects", "NoOp", "_SINK", "Const", "^a:0", "a:1",
)  # fmt: skip
_WIDTHS = {
    FieldDescriptor.CPPTYPE_INT32: (31, True), FieldDescriptor.CPPTYPE_INT64: (63, True),
    FieldDescriptor.CPPTYPE_UINT32: (32, False), FieldDescriptor.CPPTYPE_UINT64: (64, False),
}  # fmt: skip
_MOST_CHANGES = 4
_MOST_MESSAGES = 4000
_DEPTH = 5


def restructured(rng: Random, sample: Sample) -> bytes:
    """``sample``, a protobuf message, with a few fields set, taken away, repeated or exchanged."""
    message = deepcopy(_parsed(sample))
    for _ in range(rng.randrange(1, _MOST_CHANGES + 1)):
        target = rng.choice(_messages_in(message))
        rng.choice((_set, _set, _set, _take_away, _repeat, _move, _exchange))(rng, target, message)
    try:
        return sample.wrap(message.SerializeToString())
    except ValueError:  # larger than a message may be
        return sample.file


@cache
def _parsed(sample: Sample) -> Any:
    return schema.message(sample.message).FromString(sample.data)


def _messages_in(message: Any) -> list[Any]:
    """The message and those in it, the first of them where there are many."""
    found = [message]
    for holder in found:
        if len(found) > _MOST_MESSAGES:
            break
        for field, value in holder.ListFields():
            if field.message_type is None:
                continue
            if not _is_repeated(field):
                found.append(value)
            elif field.message_type.GetOptions().map_entry:
                if field.message_type.fields_by_name["value"].message_type is not None:
                    found += [value[key] for key in value]
            else:
                found += list(value)
    return found


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def _value(rng: Random, field: FieldDescriptor, depth: int = 0) -> Any:
    """A value of the field's type: often one that a bound could get wrong."""
    kind = field.cpp_type
    if kind in _WIDTHS:
        bits, signed = _WIDTHS[kind]
        value = rng.choice(_INTEGERS) if rng.random() < 0.8 else rng.getrandbits(bits)
        value &= (1 << bits) - 1
        return -value if signed and rng.random() < 0.25 else value
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        value = rng.choice(_FLOATS)
        return value if kind == FieldDescriptor.CPPTYPE_DOUBLE or abs(value) < 1e38 else 3e38
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"\xff" * 9, struct.pack("<q", -1), rng.randbytes(30)))
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return rng.choice(_TEXTS)
    made = schema.message(field.message_type.full_name)()
    if depth < _DEPTH:
        for inner in rng.sample(
            list(field.message_type.fields), min(3, len(made.DESCRIPTOR.fields))
        ):
            _put(rng, made, inner, depth + 1)
    return made


def _put(rng: Random, target: Any, field: FieldDescriptor, depth: int = 0) -> None:
    """Give the field another value, or one more."""
    value = _value(rng, field, depth)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key = value.key
        entries = getattr(target, field.name)
        if field.message_type.fields_by_name["value"].message_type is None:
            entries[key] = value.value
        else:
            entries[key].CopyFrom(value.value)
    elif _is_repeated(field):
        entries = getattr(target, field.name)
        if entries and rng.random() < 0.4:
            del entries[rng.randrange(len(entries))]
        entries.extend([value] * rng.choice((1, 1, 1, 2, 30)))
    elif field.message_type is not None:
        getattr(target, field.name).CopyFrom(value)
    else:
        setattr(target, field.name, value)


def _set(rng: Random, target: Any, _: Any) -> None:
    fields = list(target.DESCRIPTOR.fields)
    present = [field for field, _ in target.ListFields()]
    if fields:
        _put(rng, target, rng.choice(present if present and rng.random() < 0.7 else fields))


def _take_away(rng: Random, target: Any, _: Any) -> None:
    present = [field for field, _ in target.ListFields()]
    if present:
        target.ClearField(rng.choice(present).name)


def _lists(target: Any) -> list[Any]:
    return [
        value
        for field, value in target.ListFields()
        if _is_repeated(field)
        and not (field.message_type is not None and field.message_type.GetOptions().map_entry)
    ]


def _repeat(rng: Random, target: Any, _: Any) -> None:
    lists = _lists(target)
    if lists:
        chosen = rng.choice(lists)
        chosen.extend([deepcopy(rng.choice(list(chosen)))] * rng.choice((1, 2, 50)))


def _move(rng: Random, target: Any, _: Any) -> None:
    """The entries of a list in another order."""
    lists = _lists(target)
    if lists:
        chosen = rng.choice(lists)
        entries = deepcopy(list(chosen))
        rng.shuffle(entries)
        del chosen[:]
        chosen.extend(entries)


def _exchange(rng: Random, target: Any, whole: Any) -> None:
    """One message becomes what another of its kind is; it may be in it, or hold it."""
    others = [one for one in _messages_in(whole) if one.DESCRIPTOR is target.DESCRIPTOR]
    if len(others) > 1 and target is not whole:
        target.CopyFrom(deepcopy(rng.choice(others)))
