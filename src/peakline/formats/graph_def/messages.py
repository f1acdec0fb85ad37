"""Small messages as text: each distinct one is formatted once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from peakline import schema
from peakline.arrays import Int32Array
from peakline.formats.graph_def.source import GraphSource
from peakline.wire import Damage, Interner, Spans

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
    found = distinct.add(source.buffer, spans.take(rows))
    texts: list[str] = []
    for code in range(len(distinct)):
        try:
            parsed = made.FromString(distinct.bytes(code))
            for field in without:
                parsed.ClearField(field)
            texts.append(text_format.MessageToString(parsed, as_one_line=True))
        except DecodeError:
            texts.append("")
            row = int(rows[np.argmax(found == code)])
            harm = Damage(1, int(spans.length[row]), int(spans.start[row]))
            source.note(f"{message} {harm.first_offset}", harm)
    codes[rows] = found
    empty = np.array([not text for text in texts], np.bool_)
    codes[rows[empty[found]]] = -1
    return codes, texts


@cache
def data_type(number: int) -> str:
    """The name of a DataType; the number itself where no released schema names it."""
    return schema.enum_name("tensorflow.DataType", number) or str(number)


def data_types(numbers: npt.NDArray[np.integer]) -> tuple[Int32Array, list[str]]:
    """A code per number and the names; -1 for 0, which stands for none."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    found = np.where(numbers == 0, -1, codes)
    return found.astype(np.int32), [data_type(int(number)) for number in distinct]
