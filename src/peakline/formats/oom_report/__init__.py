"""Out-of-memory reports in text logs: of allocators, compilers, engines, drivers and the host."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="oom_report",
    what="out-of-memory reports in any text log",
    written_by="TensorFlow, PyTorch, JAX, XLA, serving engines, drivers, the kernel",
    fills="`oom_reports`, `oom_parts`, `blocks`, `buffers`",
    reader="peakline.formats.log.reader:LogReader",
    rank=11,
)
