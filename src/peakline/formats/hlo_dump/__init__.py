"""Directories into which XLA dumped its programs (``--xla_dump_to``), as one profile."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="hlo_dump",
    what="directory of XLA dumps",
    written_by="XLA (`--xla_dump_to=DIR`), XProf's `*.hlo_proto.pb`",
    fills="the same, of every program",
    reader="peakline.formats.hlo_dump.reader:DumpReader",
    rank=13,
    is_directory=True,
)
