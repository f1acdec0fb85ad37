"""Tables of times that profilers print for people, saved or among the lines of a log."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="op_table",
    what="tables of ops or functions that a profiler printed, in any text log",
    written_by=(
        "`key_averages().table()` of PyTorch's profilers, Lightning's `SimpleProfiler` and "
        "`AdvancedProfiler`, cProfile"
    ),
    fills="`printed_ops`",
    reader="peakline.formats.log.reader:LogReader",
    rank=12,
)
