"""Element types and shapes of tensors, back from how the runtime spells them to their messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, Int64Array
from peakline.tables.columns import Names
from peakline.text import whole_number
from peakline.wire.encode import Field, Messages, Number, Spans, encode


def data_types(names: Names) -> Int64Array:
    """Numbers of ``tensorflow.DataType``; 0 for null and for what is no type."""
    known = schema.POOL.FindEnumTypeByName("tensorflow.DataType").values_by_name

    def number(name: str) -> int:
        entry = known.get(f"DT_{name.upper()}")
        if entry is not None:
            return int(entry.number)
        return max(whole_number(name) or 0, 0)

    return names.per_row(number, np.int64)


def shapes(names: Names, number: int) -> Spans:
    """Shapes such as ``[3, ?]`` as field ``number``; none where the text is null or no shape."""
    messages = [_shape(text, number) for text in names.values]
    bounds = np.cumsum([0, *map(len, messages)])
    data = np.frombuffer(bytearray().join(messages), np.uint8)
    return Messages(data, bounds).at(names.codes.astype(np.int64))


def _shape(text: str, number: int) -> bytes:
    shape: Any = schema.message("tensorflow.TensorShapeProto")()
    if text == "<unknown>":
        shape.unknown_rank = True
    else:
        inside = text.strip()[1:-1].strip()
        for part in filter(None, map(str.strip, inside.split(","))):
            size = -1 if part == "?" else whole_number(part)
            if size is None:
                return b""
            shape.dim.add(size=size)
    content = shape.SerializeToString()
    field = encode(1, [Spans.same(content, 1)], frame=number)
    return field.data.tobytes()


def allocation_descriptions(
    numbers: Sequence[tuple[int, AnyArray]], allocator: Spans, frame: int
) -> Messages:
    """AllocationDescription messages as field ``frame``: the fields by their numbers."""
    fields: list[Field] = [Number(number, values) for number, values in numbers]
    return encode(numbers[0][1].size, [*fields, allocator], frame=frame)


def tensor_descriptions(data_type: Names, shape: Names, allocation: Spans, frame: int) -> Messages:
    """TensorDescription messages as field ``frame``."""
    fields: list[Field] = [Number(1, data_types(data_type)), shapes(shape, 2), allocation]
    return encode(len(data_type), fields, frame=frame)
