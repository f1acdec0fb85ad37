"""Events files: the TFRecord files that summary writers leave for TensorBoard."""

from peakline.formats.common.format import Format


def _begins(head: bytes) -> bool:
    """A record of 8 bytes of length, 4 of checksum, an Event, 4 of checksum."""
    if len(head) < 16:
        return False
    length = int.from_bytes(head[:8], "little")
    # wall_time (field 1, a double) is what every writer puts first.
    return 0 < length < 1 << 40 and head[12] in {0x09, 0x10, 0x1A}


FORMAT = Format(
    name="tfevents",
    what="events file, `events.out.tfevents.*`",
    written_by="TensorBoard's writers, `tf.summary.trace_export`",
    fills="those of RunMetadata, one run per tag, and the graphs",
    reader="peakline.formats.tfevents.reader:EventsFileReader",
    rank=9,
    begins=_begins,
)
