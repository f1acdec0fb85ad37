"""HloSnapshot: a program with the arguments of a run (`--xla_dump_hlo_snapshots`)."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="hlo_snapshot",
    what="HloSnapshot, `*.hlo_snapshot.pb`",
    written_by="XLA (`--xla_dump_hlo_snapshots`)",
    fills="the same",
    reader="peakline.formats.hlo_proto.reader:HloReader",
    rank=7,
    message="xla.HloSnapshot",
    fields=("hlo",),
)
