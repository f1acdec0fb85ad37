"""Heaps in pprof's format, such as JAX's device memory profile."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="pprof",
    what="pprof heap",
    written_by="`jax.profiler.save_device_memory_profile`",
    fills="`buffers`, `stacks`",
    reader="peakline.formats.pprof.reader:PprofReader",
    rank=7,
    message="perftools.profiles.Profile",
    fields=("sample_type",),
)
