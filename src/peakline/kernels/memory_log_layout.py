"""The numbers that the memory log's columns and kernels share."""

from __future__ import annotations

__all__ = [
    "BEGINS_OR_ENDS",
    "DEFERRED",
    "HAS_BUFFER",
    "KINDS",
    "MOST_LIVES",
    "RAW_ALLOCATION",
    "RAW_DEALLOCATION",
    "SHARED",
    "SINGLE_REFERENCE",
    "STEP",
    "TENSOR_ALLOCATION",
    "TENSOR_DEALLOCATION",
    "TENSOR_OUTPUT",
]

# The field numbers of peakline.MemoryLogRecord.
STEP = 3
TENSOR_ALLOCATION = 4
TENSOR_DEALLOCATION = 5
TENSOR_OUTPUT = 6
RAW_ALLOCATION = 7
RAW_DEALLOCATION = 8

KINDS = {
    STEP: "step",
    TENSOR_ALLOCATION: "tensor_allocation",
    TENSOR_DEALLOCATION: "tensor_deallocation",
    TENSOR_OUTPUT: "tensor_output",
    RAW_ALLOCATION: "raw_allocation",
    RAW_DEALLOCATION: "raw_deallocation",
}
"""The name of the field of each kind of record."""

# Bits of a record's flags.
HAS_BUFFER = 1
"""It describes a buffer: an allocation_description, or the fields of a raw allocation."""
SINGLE_REFERENCE = 2
DEFERRED = 4

# Roles of a record.
BEGINS_OR_ENDS = 1
"""It begins or ends a buffer: a row of allocator_events."""
SHARED = 2
"""A tensor output whose buffer somebody else made or put out before."""

MOST_LIVES = 16
"""So many times the ids of an allocator may begin anew and still be distinguished."""
