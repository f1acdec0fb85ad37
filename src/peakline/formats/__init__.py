"""Formats: one package each. `open_reader` recognises a file by its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from peakline.errors import DamagedError, UnknownFormatError
from peakline.formats.common.files import STDIN, Opener, SourceFile
from peakline.formats.common.format import formats, message_names
from peakline.formats.common.reader import NotedReader
from peakline.formats.common.recognise import Form, recognise
from peakline.formats.common.translate import translate
from peakline.formats.xplane.detect import reads_cleanly, went_through_text
from peakline.tables.reader import Reader, Warnings
from peakline.wire import as_buffer

__all__ = ["open_reader"]


def open_reader(
    path: str,
    *,
    max_unpacked_bytes: int | None = None,
    storage_options: Mapping[str, object] | None = None,
    opener: Opener | None = None,
    beside: Sequence[str] = (),
) -> Reader:
    """Open ``path`` (``-``: standard input; or a URL) with the source that recognises its content.

    ``max_unpacked_bytes`` is what a gzip file may expand to, ``storage_options`` are for the
    driver of a URL. ``opener`` opens a file for a caller who may not open every one.
    ``beside`` are files of compiled programs that belong to the profile (`programs_beside`): those
    that it does not hold itself are read with it, and with them it may be empty. Raises
    NotFoundError, InputError (unreadable, empty), UnknownFormatError, DamagedError, or UsageError
    for a URL that no driver opens.
    """
    if path != STDIN and opener is None and Path(path).is_dir():
        from peakline.formats.hlo_dump.reader import DumpReader

        return DumpReader(path)
    file = SourceFile(
        path,
        max_unpacked_bytes=max_unpacked_bytes,
        storage_options=storage_options,
        opener=opener,
        may_be_empty=bool(beside),
    )
    try:
        try:
            reader = _reader(file)
        finally:
            file.check()
    except BaseException:
        file.close()
        raise
    if not beside:
        return reader
    from peakline.formats.common.with_programs import with_programs_beside

    open_file = partial(SourceFile, storage_options=storage_options, opener=opener)
    return with_programs_beside(reader, beside, open_file)


def _reader(file: SourceFile) -> Reader:
    # No byte at all is the message of an XSpace in which nothing is.
    form = recognise(file.head) if file.head else Form("xplane")
    is_message = form.encoding == "binary" and form.format in {"", *message_names()}
    if is_message and went_through_text(as_buffer(file.head)) and not reads_cleanly(file.buffer):
        raise DamagedError(
            f"{file.path}: the bytes went through a text (UTF-8) conversion and cannot be "
            "restored; copy the file again in binary mode"
        )
    if not form.format:
        raise UnknownFormatError(
            f"{file.path}: not a profile that Peakline reads ({form.note or 'unknown content'})"
        )
    losses = Warnings()
    if form.encoding != "binary" and form.format in message_names():
        file = translate(file, form.encoding, message_names()[form.format], losses)
    reader = formats()[form.format].reader_class()(file, form.format)
    return cast("Reader", NotedReader(reader, losses)) if len(losses) else reader
