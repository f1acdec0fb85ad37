"""A profile in the formats of other tools: one file per target, one registry."""

from peakline.export.registry import (
    Exporter,
    Options,
    Sink,
    can_export,
    export,
    find_exporter,
    target_names,
)

__all__ = ["Exporter", "Options", "Sink", "can_export", "export", "find_exporter", "target_names"]
