"""TensorFlow's memory log (log_memory.proto): what allocators did, record by record."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="memory_log",
    what="memory log, binary; any text log with `__LOG_MEMORY__` lines",
    written_by="`peakline.record.MemoryLog`; TensorFlow with `TF_CPP_VMODULE=log_memory=2`",
    fills=(
        "`log_records`, `allocator_events`, `tensor_outputs`, `steps`, and the tables of an "
        "out-of-memory report when there is one"
    ),
    reader="peakline.formats.memory_log.reader:MemoryLogReader",
    rank=6,
    message="peakline.MemoryLog",
    fields=("record",),
)
