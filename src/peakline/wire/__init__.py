"""Protobuf wire bytes to NumPy columns: one table-driven kernel, plans made from descriptors."""

from peakline.wire.decode import as_buffer, decode, threads
from peakline.wire.first_run import help_first_run
from peakline.wire.plan import Plan
from peakline.wire.stream import Part, stream
from peakline.wire.tables import Buffer, Damage, Decoded, Spans, Union, WireTable

__all__ = [
    "Buffer",
    "Damage",
    "Decoded",
    "Part",
    "Plan",
    "Spans",
    "Union",
    "WireTable",
    "as_buffer",
    "decode",
    "help_first_run",
    "stream",
    "threads",
]
