"""What ops of the host that bring data are for.

Source of the rules: ``GenerateHostResult`` of ``convert/op_stats_to_input_pipeline_analysis.cc``
in openxla/xprof.
"""

from __future__ import annotations

ENQUEUE, DEMANDED, ADVANCED = "Enqueue", "Demanded file read", "Advanced file read"
PREPROCESSING, UNKNOWN = "Preprocessing", "Unknown"
_STATED = {
    "enqueue": ENQUEUE,
    "read": DEMANDED,
    "preprocessing": PREPROCESSING,
    "unknown": UNKNOWN,
}
"""What a stage of an input pipeline may say of itself."""
_READERS = (
    "::TFRecord", "::TextLine", "::FixedLengthRecord", "::SSTable", "::RecordIO", "::ArrayRecord",
)  # fmt: skip
_AHEAD = ("::MemoryReader", "::MemoryWriter", "::Interleave", "::Prefetch", "::ParallelMap")


def is_enqueue(op_type: str) -> bool:
    """Whether ops of this type send data to a TPU's infeed queue."""
    return op_type.startswith("InfeedEnqueue")


def input_category(name: str, op_type: str) -> str | None:
    """What an op is for, None for one that brings no data."""
    stated = _STATED.get(op_type.lower())
    if stated is not None:
        return stated
    if is_enqueue(op_type) or op_type == "MemcpyHToD":
        return ENQUEUE
    if op_type != "Dataset":
        return None
    if not name.endswith(_READERS):
        return PREPROCESSING
    return ADVANCED if any(part in name for part in _AHEAD) else DEMANDED
