"""Out-of-memory reports in text logs: TensorFlow's BFC allocator, PyTorch, XLA and TPU."""

from peakline.formats.oom_report.scanner import OomScanner
from peakline.formats.oom_report.tables import OomReports

__all__ = ["OomReports", "OomScanner"]
