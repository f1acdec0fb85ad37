"""XLA's programs in text form: dumped by ``--xla_dump_to``, printed by ``as_text()`` of JAX."""

from peakline.formats.common.format import Format
from peakline.formats.hlo_text.begins import is_module

FORMAT = Format(
    name="hlo_text",
    what="HLO text",
    written_by="XLA with `--xla_dump_to`; `compiled.as_text()` of JAX",
    fills="the same",
    reader="peakline.formats.hlo_text.reader:HloTextReader",
    rank=13,
    begins=is_module,
    is_text=True,
)
