"""Formats: one package each. `open_reader` recognises a file by its content."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from peakline.errors import DamagedError, UnknownFormatError
from peakline.formats.files import SourceFile
from peakline.formats.noted import Note, NotedReader
from peakline.formats.recognise import MESSAGES, recognise
from peakline.formats.xplane.detect import reads_cleanly, went_through_text
from peakline.tables.reader import Reader
from peakline.wire import as_buffer

__all__ = ["open_reader"]

_READERS = {
    "xplane": "peakline.formats.xplane.reader:XPlaneReader",
    "run_metadata": "peakline.formats.run_metadata.reader:RunMetadataReader",
    "step_stats": "peakline.formats.run_metadata.reader:RunMetadataReader",
    "graph_def": "peakline.formats.graph_def.reader:GraphReader",
    "meta_graph": "peakline.formats.graph_def.reader:GraphReader",
    "saved_model": "peakline.formats.graph_def.reader:GraphReader",
    "tfevents": "peakline.formats.tfevents.reader:EventsFileReader",
    "memory_log": "peakline.formats.memory_log.reader:MemoryLogReader",
    "log": "peakline.formats.log:LogReader",
    "torch_snapshot": "peakline.formats.torch_snapshot.reader:TorchSnapshotReader",
    "chrome_trace": "peakline.formats.chrome_trace.reader:ChromeTraceReader",
    "pprof": "peakline.formats.pprof.reader:PprofReader",
}
"""Who reads a format: called with the `SourceFile` and the format's name."""


def open_reader(
    path: str,
    *,
    max_unpacked_bytes: int | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Reader:
    """Open ``path`` (``-``: standard input; or a URL) with the source that recognises its content.

    ``max_unpacked_bytes`` is what a gzip file may expand to, ``storage_options`` are for the
    driver of a URL. Raises NotFoundError, InputError (unreadable, empty), UnknownFormatError,
    DamagedError, or UsageError for a URL that no driver opens.
    """
    file = SourceFile(path, max_unpacked_bytes=max_unpacked_bytes, storage_options=storage_options)
    try:
        return _reader(file)
    except BaseException:
        file.close()
        raise


def _reader(file: SourceFile) -> Reader:
    form = recognise(file.head)
    is_message = form.encoding == "binary" and form.format in {"", *MESSAGES}
    if is_message and went_through_text(as_buffer(file.head)) and not reads_cleanly(file.buffer):
        raise DamagedError(
            f"{file.path}: the bytes went through a text (UTF-8) conversion and cannot be "
            "restored; copy the file again in binary mode"
        )
    if not form.format:
        raise UnknownFormatError(
            f"{file.path}: not a profile that Peakline reads ({form.note or 'unknown content'})"
        )
    notes: list[Note] = []
    if form.encoding != "binary" and form.format in MESSAGES:
        from peakline.formats.translate import translate

        translated = translate(file, form.encoding, MESSAGES[form.format])
        file = translated.file
        notes = [
            Note(
                "unknown_fields",
                f"fields that the schema does not have; the first is {translated.first_unknown}",
                translated.unknown,
            ),
            Note("redacted", "values that the writer blacked out", translated.redacted),
        ]
    module, _, name = _READERS[form.format].partition(":")
    reader: Reader = getattr(import_module(module), name)(file, form.format)
    return NotedReader(reader, notes) if any(note.count for note in notes) else reader
