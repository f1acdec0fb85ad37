"""XLA's buffer assignments and memory usage reports in text form, read as programs are."""

from peakline.formats.common.format import Format
from peakline.formats.hlo_text.begins import is_assignment

FORMAT = Format(
    name="hlo_assignment",
    what="buffer assignment, `*-buffer-assignment.txt`; memory usage report",
    written_by="XLA with `--xla_dump_to`",
    fills="the same",
    reader="peakline.formats.hlo_text.reader:HloAssignmentReader",
    rank=14,
    begins=is_assignment,
    is_text=True,
)
