"""What Peakline reads in a directory without sessions: programs of XLA, profiles, logs."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from peakline.deadline import check_deadline
from peakline.errors import InputError, NotFoundError, PeaklineError, UsageError
from peakline.places import is_url
from peakline.repository.names import host_of
from peakline.repository.store import FileEntry, Folder, Unreadable
from peakline.repository.stores import store_for

if TYPE_CHECKING:
    from peakline.formats.common.files import Opener
    from peakline.tables.rank_facts import RankFacts


def dumped_in(path: str | os.PathLike[str]) -> str | None:
    """``path`` where it is a local directory into which XLA dumped programs (``module_*``; not
    XProf's own ``*.hlo_proto.pb``, which come from the profile beside them).
    """
    from peakline.formats.hlo_dump.listing import is_dump

    place = os.fspath(path)
    result = (name for name in _files(place) if name.startswith("module_"))
    return place if is_dump(result) else None


def programs_beside(file: str) -> list[str]:
    """The files of compiled programs that XProf wrote beside the profile ``file``, by name; none
    of a file that has not the name of a session's profile, or whose directory cannot be read.
    """
    from peakline.formats.hlo_dump.listing import is_xprof_program

    parent, separator, name = file.replace(os.sep, "/").rpartition("/")
    if host_of(name) is None:
        return []
    place = parent + separator if separator == "/" and not parent else parent or "."
    with suppress(InputError, NotFoundError, UsageError, Unreadable):
        entries = store_for(place, {}).folder(place).files()
        return sorted(entry.path for entry in entries if is_xprof_program(entry.name))
    return []


def logs_in(directory: str) -> list[str]:
    """The paths of texts in a directory of dumps that XLA did not write, by name."""
    return [
        str(Path(directory) / name)
        for name in sorted(_files(directory))
        if name.removesuffix(".gz").endswith(_TEXTS) and not name.startswith((".", "module_"))
    ]


def _files(place: str) -> list[str]:
    """The names in a local directory; none of one that cannot be read, or of a file."""
    try:
        return [] if is_url(place) else [entry.name for entry in Path(place).iterdir()]
    except OSError:
        return []


_TEXTS = (".err", ".log", ".out", ".txt")
_ENDINGS = (".json", ".pb", ".pbtxt", ".pickle", ".pkl", ".pprof", ".prof", ".profile", *_TEXTS)
"""Of what is called otherwise too much is recognised that no profile is."""
_GZIP = ".gz"
_GZIPPED = b"\x1f\x8b"
_GZIP_OR_ZLIB = 47
_MOST_FILES = 64
_HEAD_BYTES = 256 << 10
_LOG_BYTES, _REMOTE_LOG_BYTES = 64 << 20, 8 << 20
"""So much of all texts is read, to find a report of memory that ran out in one."""
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Readable:
    """A file that can be read, and its format."""

    name: str
    path: str
    format: str

    def __str__(self) -> str:
        return f"{self.name} ({self.format})"


def readable_in(folder: Folder, storage_options: Mapping[str, object]) -> list[Readable]:
    """The files in ``folder`` of formats that Peakline reads, by name: those of the first 64 with
    such an ending whose first bytes, or all of a text, say so; Unreadable or Missing.

    What cannot be read is none.
    """
    result = []
    budget = _REMOTE_LOG_BYTES if is_url(folder.path) else _LOG_BYTES
    for entry in sorted(filter(may_be_read, folder.files()))[:_MOST_FILES]:
        check_deadline()
        with suppress(OSError, ValueError, zlib.error, PeaklineError, Unreadable):
            form, read = format_of(entry, storage_options, budget)
            budget -= read
            if form:
                result.append(Readable(entry.name, entry.path, form))
    return result


def may_be_read(entry: FileEntry) -> bool:
    """Whether its name ends as those of profiles, programs and logs do."""
    name = entry.name.removesuffix(_GZIP)
    return name.endswith(_ENDINGS) and not entry.name.startswith((".", "module_"))


def format_of(
    entry: FileEntry,
    storage_options: Mapping[str, object],
    budget: int,
    opener: Opener | None = None,
) -> tuple[str, int]:
    """The format of a file, empty for none, and how much of ``budget`` was read for it."""
    from peakline.formats.common.recognise import recognise

    with _opened(entry.path, storage_options, opener) as stream:
        pieces = _pieces(stream)
        head = next(pieces, b"")
        form = recognise(head).format if head else ""
        if form not in ("log", "oom_report"):
            return form, 0
        if not entry.name.removesuffix(_GZIP).endswith(_TEXTS):
            return "", 0
        return _format_of_log(head, pieces, budget)


def _format_of_log(head: bytes, pieces: Iterator[bytes], budget: int) -> tuple[str, int]:
    """``log`` where it has something to read."""
    from peakline.formats.log.reader import LogProbe

    probe, read = LogProbe(), 0
    piece: bytes | None = head
    while piece and read < budget:
        check_deadline()
        probe.feed(piece)
        read += len(piece)
        piece = next(pieces, None)
    return "log" if probe.finish() else "", read


def head_of(
    path: str, storage_options: Mapping[str, object], opener: Opener | None = None
) -> bytes:
    """The first bytes of a file, unpacked; raises as `rank_facts_of`."""
    with _opened(path, storage_options, opener) as stream:
        return next(_pieces(stream), b"")


def rank_facts_of(
    path: str, storage_options: Mapping[str, object], opener: Opener | None = None, budget: int = 0
) -> tuple[RankFacts, int]:
    """What a trace says of its rank in its first bytes or its last, and how much of ``budget`` was
    unpacked to come to the last bytes of one that is gzip.

    Raises OSError, InputError, NotFoundError or ForbiddenError where it cannot be opened.
    """
    from peakline.formats.chrome_trace.ranks import facts_of_ends

    with _opened(path, storage_options, opener) as stream:
        is_packed = stream.read(2) == _GZIPPED
        stream.seek(0)
        pieces = _pieces(stream)
        head = next(pieces, b"")
        facts = facts_of_ends(head)
        if facts.rank is not None:
            return facts, 0
        # Python writes it before the events, Kineto itself after them.
        last = next(pieces, b"")
        if not last:
            return facts_of_ends(head, head), 0
        if not is_packed:
            stream.seek(max(stream.seek(0, os.SEEK_END) - _HEAD_BYTES, 0))
            return facts_of_ends(head, stream.read()), 0
        before, read = b"", len(last)
        for piece in pieces:
            before, last, read = last, piece, read + len(piece)
            if read > budget:
                return facts, read
        return facts_of_ends(head, before[-_HEAD_BYTES:] + last), read


@contextmanager
def _opened(
    path: str, storage_options: Mapping[str, object], opener: Opener | None = None
) -> Iterator[BinaryIO]:
    """The file as a stream; a driver's errors as InputError."""
    if not is_url(path):
        # A pipe that took the file's name meanwhile must not hold anybody up.
        flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags) if opener is None else opener(path)
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            yield stream
        return
    from peakline.formats.common.urls import connect, reading

    system: Any
    system, place = connect(path, storage_options)
    with reading(path), system.open(place, "rb", block_size=_HEAD_BYTES) as remote:
        yield remote


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """The content, unpacked where it is gzip: a first piece of at most 256 KiB, then larger ones.
    What is damaged ends early.
    """
    size = _HEAD_BYTES
    block = stream.read(size)
    if not block.startswith(_GZIPPED):
        while block:
            yield block
            size = _PIECE_BYTES
            block = stream.read(size)
        return
    decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
    with suppress(zlib.error):
        while block and not decoder.eof:
            while block and not decoder.eof:
                piece = decoder.decompress(block, size)
                block, size = decoder.unconsumed_tail, _PIECE_BYTES
                if piece:
                    yield piece
            block = stream.read(_PIECE_BYTES)
