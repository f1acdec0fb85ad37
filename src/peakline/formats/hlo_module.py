"""HloModuleProto: a program without its buffer assignment."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="hlo_module",
    what="HloModuleProto",
    written_by="XLA, JAX (`compiler_ir('hlo').as_serialized_hlo_module_proto()`)",
    fills="the same",
    reader="peakline.formats.hlo_proto.reader:HloReader",
    rank=6,
    message="xla.HloModuleProto",
    fields=("entry_computation_name", "computations"),
)
