r"""AttrValue as text, for any number of them at once and without their tensors' content.

=========== ======================================================================
kind        text
=========== ======================================================================
s           the string; a backslash, control characters and bytes that are not UTF-8
            are escaped (``\\``, ``\n``, ``\x00``)
i, f        the number, a float as the shortest text that gives it back
b           ``true`` or ``false``
type        ``DT_FLOAT``, or the number of an unknown type
shape       ``[2,3]``; ``?`` for an unknown dimension, ``name=2`` for a named one,
            ``<unknown>`` for an unknown rank
tensor      ``DT_FLOAT [3, 3], 36 bytes``: the size of all its elements in memory; of
            strings their own bytes; without size where that is not known or absurd
list        ``[...]`` of the same, strings in double quotes
func        ``name{attr=value, ...}`` by attribute name; ``name`` alone without any
placeholder the name
=========== ======================================================================

Source of the fields: ``attr_value.proto``, ``tensor.proto`` and ``tensor_shape.proto``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from peakline import schema
from peakline.arrays import AnyArray, Int8Array, Int32Array
from peakline.deadline import checked
from peakline.formats.graph_def.source import GraphSource
from peakline.wire import Buffer, Damage, Decoded, Interner, Plan, Spans, Union, decode

if TYPE_CHECKING:
    from google.protobuf.message import Message


def message_texts(
    source: GraphSource, spans: Spans, message: str, without: Iterable[str] = ()
) -> tuple[Int32Array, list[str]]:
    """A code per span and the texts (text format, one line); -1 for what is empty or broken.

    ``without`` names fields that the texts leave out.
    """
    made: type[Message] = schema.message(message)
    codes = np.full(len(spans), -1, np.int32)
    rows = np.flatnonzero(spans.length)
    distinct = Interner()
    result = distinct.add(source.buffer, spans.take(rows))
    texts: list[str] = []
    for code in range(len(distinct)):
        try:
            parsed = made.FromString(distinct.bytes(code))
            for field in without:
                parsed.ClearField(field)
            texts.append(text_format.MessageToString(parsed, as_one_line=True))
        except DecodeError:
            texts.append("")
            row = int(rows[np.argmax(result == code)])
            harm = Damage(1, int(spans.length[row]), int(spans.start[row]))
            source.note(f"{message} {harm.first_offset}", harm)
    codes[rows] = result
    empty = np.array([not text for text in texts], np.bool_)
    codes[rows[empty[result]]] = -1
    return codes, texts


@cache
def data_type(number: int) -> str:
    """The name of a DataType; the number itself where no released schema names it."""
    return schema.enum_name("tensorflow.DataType", number) or str(number)


def data_types(numbers: npt.NDArray[np.integer]) -> tuple[Int32Array, list[str]]:
    """A code per number and the names; -1 for 0, which stands for none."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    result = np.where(numbers == 0, -1, codes)
    return result.astype(np.int32), [data_type(int(number)) for number in distinct]


_LIST, _S, _I, _F, _B, _TYPE, _SHAPE, _TENSOR, _PLACEHOLDER, _FUNC = range(1, 11)
KINDS = ("", "list", "s", "i", "f", "b", "type", "shape", "tensor", "placeholder", "func")
"""The members of AttrValue.value by field number; empty for none."""

_MOST_DEPTH = 32
"""Functions within functions; a protobuf parser's own limit on nesting is about as deep."""

_SIZES = {
    1: "UINT8 INT8 BOOL QINT8 QUINT8 FLOAT8_E5M2 FLOAT8_E4M3FN FLOAT8_E4M3FNUZ"
    " FLOAT8_E4M3B11FNUZ FLOAT8_E5M2FNUZ INT4 UINT4 INT2 UINT2 FLOAT4_E2M1FN",
    2: "INT16 UINT16 QINT16 QUINT16 BFLOAT16 HALF",
    4: "FLOAT INT32 QINT32 UINT32",
    8: "DOUBLE INT64 UINT64 COMPLEX64",
    16: "COMPLEX128",
}
_ELEMENT_BYTES = {f"DT_{name}": size for size, names in _SIZES.items() for name in names.split()}
"""Bytes per element in memory; types below a byte take one each."""

_MOST_BYTES = 1 << 63
"""A tensor of this size or more is none: a broken shape, whose size would say nothing."""

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r"[\\\x00-\x1f\x7f\udc80-\udcff]")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    # surrogateescape keeps a byte that is not UTF-8 as U+DC00 and the byte.
    return _ESCAPES.get(character) or f"\\x{ord(character) & 0xFF:02x}"


def escaped(value: bytes) -> str:
    """Bytes as text, which differs where they do."""
    return _SPECIAL.sub(_escape, value.decode("utf-8", "surrogateescape"))


def _quoted(value: bytes) -> str:
    return '"' + escaped(value).replace('"', '\\"') + '"'


@cache
def _plan(message: str, *paths: str) -> Plan:
    return Plan(schema.shape(f"tensorflow.{message}"), paths)


class _Formatter:
    """The texts of messages of one buffer; ``damage`` adds up."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.damage = Damage()

    def _decode(self, plan: Plan, spans: Spans) -> Decoded:
        decoded = decode(self.buffer, plan, spans)
        self.damage += decoded.damage
        return decoded

    def values(self, spans: Spans, depth: int = 0) -> tuple[list[str], Int8Array]:
        """Text and kind of every AttrValue; below the top, strings are quoted."""
        value = self._decode(_plan("AttrValue", "value"), spans)[""].union("value")
        texts = [""] * len(spans)
        string = self._quoted if depth else self._escaped
        members: dict[int, Callable[[Union], Iterable[str]]] = {
            _LIST: lambda result: self.lists(_spans(result), depth),
            _S: lambda result: string(_spans(result)),
            _I: lambda result: map(str, result.bits.tolist()),
            _F: lambda result: _floats(result.bits.astype(np.int32).view(np.float32)),
            _B: lambda result: ("true" if bits else "false" for bits in result.bits.tolist()),
            _TYPE: lambda result: map(data_type, result.bits.tolist()),
            _SHAPE: lambda result: self.shapes(_spans(result)),
            _TENSOR: lambda result: self.tensors(_spans(result)),
            _PLACEHOLDER: lambda result: self._escaped(_spans(result)),
            _FUNC: lambda result: self.functions(_spans(result), depth),
        }
        for case, member in members.items():
            rows = np.flatnonzero(value.case == case)
            if rows.size:
                for row, text in checked(zip(rows.tolist(), member(value.take(rows)), strict=True)):
                    texts[row] = text
        return texts, value.case.astype(np.int8)

    def _escaped(self, spans: Spans) -> list[str]:
        return [escaped(spans.bytes(self.buffer, row)) for row in checked(range(len(spans)))]

    def _quoted(self, spans: Spans) -> list[str]:
        return [_quoted(spans.bytes(self.buffer, row)) for row in checked(range(len(spans)))]

    def _dimensions(self, spans: Spans) -> tuple[list[list[tuple[int, str]]], list[bool]]:
        """Sizes and names of the dimensions, and whether the rank is unknown."""
        decoded = self._decode(
            _plan("TensorShapeProto", "dim.size", "dim.name", "unknown_rank"), spans
        )
        dimensions: list[list[tuple[int, str]]] = [[] for _ in range(len(spans))]
        table = decoded["dim"]
        names = table.spans("name")
        texts = names.texts(self.buffer) if names.length.any() else [""] * table.rows
        for row, size, name in zip(
            table.parent.tolist(), table.array("size").tolist(), texts, strict=True
        ):
            dimensions[row].append((size, name))
        return dimensions, decoded[""].array("unknown_rank").astype(np.bool_).tolist()

    def shapes(self, spans: Spans) -> list[str]:
        """The text of every TensorShapeProto."""
        return [
            "<unknown>" if unknown else f"[{','.join(map(_dimension, shape))}]"
            for shape, unknown in zip(*self._dimensions(spans), strict=True)
        ]

    def tensors(self, spans: Spans) -> list[str]:
        """The text of every TensorProto; its content is not looked at."""
        decoded = self._decode(_plan("TensorProto", "dtype", "tensor_shape", "string_val"), spans)
        strings = decoded["string_val"]
        held = np.bincount(
            strings.parent, strings.spans("value").length, minlength=len(spans)
        ).astype(np.int64)
        shapes = zip(*self._dimensions(decoded[""].spans("tensor_shape")), strict=True)
        return [
            _tensor(data_type(dtype), [size for size, _ in shape], unknown, string_bytes)
            for dtype, string_bytes, (shape, unknown) in zip(
                decoded[""].array("dtype").tolist(), held.tolist(), shapes, strict=True
            )
        ]

    def lists(self, spans: Spans, depth: int) -> list[str]:
        """The text of every AttrValue.ListValue."""
        kinds = ("s", "i", "f", "b", "type", "shape", "tensor", "func")
        decoded = self._decode(_plan("AttrValue.ListValue", *kinds), spans)
        items: list[list[str]] = [[] for _ in range(len(spans))]
        texts: dict[str, Callable[[Any], Iterable[str]]] = {
            "s": self._quoted,
            "i": lambda numbers: map(str, numbers.tolist()),
            "f": _floats,
            "b": lambda flags: ("true" if flag else "false" for flag in flags.tolist()),
            "type": lambda numbers: map(data_type, numbers.tolist()),
            "shape": self.shapes,
            "tensor": self.tensors,
            "func": lambda result: self.functions(result, depth),
        }
        for kind in kinds:
            table = decoded[kind]
            if table.rows:
                for row, text in zip(
                    table.parent.tolist(), texts[kind](table.columns["value"]), strict=True
                ):
                    items[row].append(text)
        return [f"[{', '.join(item)}]" for item in items]

    def functions(self, spans: Spans, depth: int) -> list[str]:
        """The text of every NameAttrList."""
        decoded = self._decode(_plan("NameAttrList", "name", "attr.key", "attr.value"), spans)
        names = self._escaped(decoded[""].spans("name"))
        entries = decoded["attr"]
        if not entries.rows:
            return names
        if depth >= _MOST_DEPTH:
            values = ["..."] * entries.rows
        else:
            values, _ = self.values(entries.spans("value"), depth + 1)
        attrs: list[dict[bytes, str]] = [{} for _ in names]
        keys = entries.spans("key")
        for row, (owner, value) in enumerate(zip(entries.parent.tolist(), values, strict=True)):
            attrs[owner][keys.bytes(self.buffer, row)] = value
        return [_function(name, of) for name, of in zip(names, attrs, strict=True)]


def value_texts(buffer: Buffer, spans: Spans) -> tuple[list[str], Int8Array, Damage]:
    """Text and kind (an index of `KINDS`) of every AttrValue, and what was damaged in them."""
    formatter = _Formatter(buffer)
    texts, kinds = formatter.values(spans)
    return texts, kinds, formatter.damage


def _spans(result: Union) -> Spans:
    return Spans(result.bits, result.length)


def _floats(numbers: AnyArray) -> Iterable[str]:
    return map(str, numbers.astype(np.float32))


def _function(name: str, attrs: dict[bytes, str]) -> str:
    if not attrs:
        return name
    return f"{name}{{{', '.join(f'{escaped(key)}={attrs[key]}' for key in sorted(attrs))}}}"


def _dimension(dimension: tuple[int, str]) -> str:
    size, name = dimension
    text = "?" if size < 0 else str(size)
    return f"{escaped(name.encode())}={text}" if name else text


def _tensor(dtype: str, shape: list[int], unknown: bool, string_bytes: int) -> str:
    if unknown:
        text = f"{dtype} <unknown>"
    else:
        text = f"{dtype} [{', '.join('?' if size < 0 else str(size) for size in shape)}]"
    if dtype == "DT_STRING":
        return f"{text}, {string_bytes} bytes"
    element = _ELEMENT_BYTES.get(dtype)
    if element is None or unknown or any(size < 0 for size in shape):
        return text
    held = 0 if 0 in shape else element
    for size in shape:
        held *= size
        if held >= _MOST_BYTES:
            return text
    return f"{text}, {held} bytes"
