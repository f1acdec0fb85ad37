"""Out-of-memory reports in text logs: TensorFlow's BFC allocator, PyTorch, XLA and TPU."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="oom_report",
    what="out-of-memory reports in any text log",
    written_by="TensorFlow's and XLA's BFC allocator, PyTorch, JAX",
    fills="`oom_reports`, `blocks`, `buffers`",
    reader="peakline.formats.log.reader:LogReader",
    rank=11,
)
