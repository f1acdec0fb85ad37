"""The fields of every message, for decoding bytes into columns without the protobuf runtime.

Importing the runtime and filling its pool takes longer than decoding most profiles. A
`MessageShape` has those attributes of protobuf's descriptors that plans use, under the same names;
`peakline.schema.shape_texts` holds what they are made of, written by scripts/generate_schema.py.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import NamedTuple

from peakline.schema.shape_texts import ENUMS, MESSAGES

_ENUM = 14
"""The type of a field that holds an enum's number."""


class EnumValue(NamedTuple):
    """A name and its number."""

    name: str
    number: int


class EnumShape:
    """The values of an enum; ``is_closed`` where the schema's numbers are all there may be."""

    def __init__(self, full_name: str) -> None:
        self.full_name = full_name
        kind, *texts = ENUMS[full_name].split("|")
        self.is_closed = kind == "closed"
        pairs = (text.split(" ") for text in texts)
        self.values = [EnumValue(name, int(number)) for name, number in pairs]
        self.names = {value.number: value.name for value in reversed(self.values)}
        """The first name of every number."""


class OneofShape:
    """A oneof and its fields, in the order of their declaration."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: list[FieldShape] = []


class FieldShape:
    """One field; ``type`` is a number of protobuf's FieldDescriptorProto.Type."""

    def __init__(self, text: str, oneofs: dict[str, OneofShape]) -> None:
        """``text`` is as `generate_schema.py` writes it: name, number, type, and what else is said
        of the field: ``*`` where it is repeated, ``?`` where it has presence, ``=`` and its oneof,
        ``:`` and its message or enum.
        """
        name, number, type_, *more = text.split(" ")
        self.name, self.number, self.type = name, int(number), int(type_)
        self.is_repeated, self.has_presence = "*" in more, "?" in more
        self.containing_oneof: OneofShape | None = None
        self._of = ""
        for word in more:
            if word[0] == "=":
                oneof = oneofs.setdefault(word[1:], OneofShape(word[1:]))
                oneof.fields.append(self)
                self.containing_oneof = oneof
            elif word[0] == ":":
                self._of = word[1:]

    @property
    def message_type(self) -> MessageShape | None:
        """The message that the field holds, None where it holds none."""
        return shape(self._of) if self._of and self.type != _ENUM else None

    @property
    def enum_type(self) -> EnumShape | None:
        """The enum that the field is of, None where it is of none."""
        return _enum(self._of) if self.type == _ENUM else None


class MessageShape:
    """One message; its fields are read when somebody looks at them."""

    def __init__(self, full_name: str, text: str) -> None:
        """``text`` is what `FieldShape` takes of every field, with bars between."""
        self.full_name = full_name
        self.name = full_name.rpartition(".")[2]
        self._text = text

    @cached_property
    def _read(self) -> tuple[list[FieldShape], dict[str, OneofShape]]:
        oneofs: dict[str, OneofShape] = {}
        return [FieldShape(text, oneofs) for text in filter(None, self._text.split("|"))], oneofs

    @property
    def fields(self) -> list[FieldShape]:
        """The fields in the order of their declaration."""
        return self._read[0]

    @property
    def oneofs_by_name(self) -> dict[str, OneofShape]:
        """The oneofs, those of single optional fields included."""
        return self._read[1]

    def with_field(self, text: str) -> MessageShape:
        """The same message with its field of that name as ``text`` says (see `FieldShape`)."""
        name = text.partition(" ")[0]
        texts = (text if one.partition(" ")[0] == name else one for one in self._text.split("|"))
        return MessageShape(self.full_name, "|".join(texts))

    @cached_property
    def fields_by_name(self) -> dict[str, FieldShape]:
        """The fields by name."""
        return {field.name: field for field in self.fields}

    @cached_property
    def fields_by_number(self) -> dict[int, FieldShape]:
        """The fields by number."""
        return {field.number: field for field in self.fields}


@cache
def shape(full_name: str) -> MessageShape:
    """The shape of a message, nested ones included; one object for each name.

    Raises ``KeyError`` if there is no such message.
    """
    return MessageShape(full_name, MESSAGES[full_name])


def enum_name(full_name: str, number: int) -> str | None:
    """The name of an enum's value, None if the number is unknown.

    Enums are open: a newer producer may write numbers that no released schema names. Raises
    ``KeyError`` if there is no such enum.
    """
    return _enum(full_name).names.get(number)


@cache
def _enum(full_name: str) -> EnumShape:
    return EnumShape(full_name)
