"""Protobuf wire bytes to NumPy columns: one table-driven kernel, plans made from messages."""

from peakline.wire.decode import Part, ahead, as_buffer, decode, on_all_cores, stream
from peakline.wire.pieces import threads
from peakline.wire.plan import Plan
from peakline.wire.strings import Interner, joined, utf8_of
from peakline.wire.tables import Buffer, Damage, Decoded, Spans, Union, WireTable
from peakline.wire.text import TextResult, text_to_wire

__all__ = [
    "Buffer",
    "Damage",
    "Decoded",
    "Interner",
    "Part",
    "Plan",
    "Spans",
    "TextResult",
    "Union",
    "WireTable",
    "ahead",
    "as_buffer",
    "decode",
    "joined",
    "on_all_cores",
    "stream",
    "text_to_wire",
    "threads",
    "utf8_of",
]
