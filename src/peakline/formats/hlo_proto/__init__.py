"""Programs that XLA compiled: HloProto files, and the programs inside other files."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="hlo_proto",
    what="HloProto, `*.hlo.pb`, `*.hlo_proto.pb`",
    written_by="XLA (`--xla_dump_to` with `--xla_dump_hlo_as_proto`), XProf",
    fills=(
        "`hlo_modules`, `hlo_computations`, `hlo_instructions`, `hlo_operands`, `hlo_calls`, "
        "`hlo_frames`, `hlo_buffers`, `hlo_heap_events`"
    ),
    reader="peakline.formats.hlo_proto.reader:HloReader",
    rank=5,
    message="xla.HloProto",
    fields=("hlo_module", "buffer_assignment"),
)
