"""Shapes of messages say what protobuf's own descriptors say."""

import dataclasses
import pickle
import subprocess
import sys

import pytest
from google.protobuf.descriptor import Descriptor

from peakline import schema
from peakline.schema import shape_texts
from peakline.wire import Plan

NAMES = ("name", "number", "type", "has_presence")


def is_repeated(field):
    """Older protobuf runtimes only know the label, newer ones warn of it."""
    flag = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if flag is None else flag


def below(message):
    yield message
    for nested in message.nested_types:
        yield from below(nested)


def descriptors():
    """Every message of ours, and what these consist of."""
    found = {}
    waiting = list(map(schema.descriptor, shape_texts.MESSAGES))
    while waiting:
        message = waiting.pop()
        if message.full_name not in found:
            found[message.full_name] = message
            waiting += [field.message_type for field in message.fields if field.message_type]
            waiting += below(message)
    return found


def full_name(entry):
    return None if entry is None else entry.full_name


def field_facts(field):
    oneof = field.containing_oneof
    return (
        *(getattr(field, name) for name in NAMES),
        is_repeated(field),
        full_name(field.message_type),
        full_name(field.enum_type),
        None if oneof is None else (oneof.name, [member.name for member in oneof.fields]),
    )


def test_every_message_has_the_fields_of_its_descriptor():
    every = descriptors()
    top = [schema.SHORT_NAMES[name] for name in schema.SHORT_NAMES]
    names = {m.full_name for d in top if isinstance(d, Descriptor) for m in below(d)}
    assert names <= set(every) == set(shape_texts.MESSAGES)
    for name, message in every.items():
        shape = schema.shape(name)
        assert (shape.full_name, shape.name) == (message.full_name, message.name)
        assert [*map(field_facts, shape.fields)] == [*map(field_facts, message.fields)], name
        assert list(shape.fields_by_name) == [field.name for field in message.fields]
        assert set(shape.fields_by_number) == set(message.fields_by_number)
        assert set(shape.oneofs_by_name) == set(message.oneofs_by_name)


def test_every_enum_has_the_values_of_its_descriptor():
    assert len(shape_texts.ENUMS) > 20
    for name in shape_texts.ENUMS:
        enum = schema.POOL.FindEnumTypeByName(name)
        for number in {value.number for value in enum.values}:
            assert schema.enum_name(name, number) in {
                value.name for value in enum.values if value.number == number
            }
    fields = [f for m in descriptors().values() for f in m.fields if f.enum_type]
    for field in fields:
        ours = schema.shape(field.containing_type.full_name).fields_by_name[field.name].enum_type
        values = [(value.name, value.number) for value in field.enum_type.values]
        assert [tuple(value) for value in ours.values] == values
        assert ours.is_closed == field.enum_type.is_closed


def test_a_plan_is_the_same_from_a_shape_and_from_a_descriptor():
    for name, paths in (
        ("tensorflow.profiler.XSpace", ["planes.**", "hostnames"]),
        ("tensorflow.RunMetadata", ["**"]),
        ("tensorflow.GraphDef", ["node.name", "node.attr.key", "library.function.@"]),
        ("peakline.MemoryLog", ["**"]),
    ):
        ours, theirs = (Plan(of(name), paths) for of in (schema.shape, schema.descriptor))
        assert [(t.path, t.columns, t.parent, t.frame) for t in ours.tables] == [
            (t.path, t.columns, t.parent, t.frame) for t in theirs.tables
        ]
        for field in dataclasses.fields(ours.arrays):
            one, other = (getattr(plan.arrays, field.name) for plan in (ours, theirs))
            assert pickle.dumps(one) == pickle.dumps(other), field.name


def test_unknown_names_are_errors():
    with pytest.raises(KeyError):
        schema.shape("tensorflow.Nothing")
    with pytest.raises(KeyError):
        schema.enum_name("tensorflow.Nothing", 0)


def test_one_field_can_be_said_to_be_another():
    changed = schema.shape("tensorflow.ProfileResponse").with_field("xspace 8 12 *")
    field = changed.fields_by_name["xspace"]
    assert (field.number, field.type, field.is_repeated, field.message_type) == (8, 12, True, None)
    assert len(changed.fields) == len(schema.shape("tensorflow.ProfileResponse").fields)


def test_shapes_need_no_protobuf_runtime():
    program = (
        "import sys; from peakline import schema;"
        "schema.shape('tensorflow.profiler.XSpace').fields; print('google.protobuf' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert shown.stdout.strip() == b"False"
