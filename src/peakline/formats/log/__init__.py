"""Any text log: its reader finds a memory log in it, or out-of-memory reports, or nothing."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="log",
    what="text log",
    written_by="anything",
    fills="what its memory log or its out-of-memory reports fill",
    reader="peakline.formats.log.reader:LogReader",
    rank=12,
)
