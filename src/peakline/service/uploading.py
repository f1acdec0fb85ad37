"""Files that callers send to be stored as sessions of their own."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from peakline.deadline import check_deadline
from peakline.engine import Gate
from peakline.engine.profile_cache import check_opens
from peakline.errors import ForbiddenError, InputError, UnknownFormatError, UsageError
from peakline.formats.common.format import Format, formats
from peakline.formats.common.recognise import recognise
from peakline.repository import HostFile, check_name
from peakline.service.access import Access
from peakline.service.capturing import SessionsInTheMaking
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings

_CONCURRENT, _QUEUED = 4, 16
_HEAD_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
_PIECE_BYTES = 1 << 20
_LOG = "log"
_HOST = "upload"


class ExpandsError(UsageError):
    """A gzip file holds more than the server unpacks."""


class Uploads:
    """Takes uploads; several at once, each written to the disk as it comes."""

    def __init__(
        self, settings: Settings, access: Access, metrics: Metrics, sessions: SessionsInTheMaking
    ) -> None:
        self._settings = settings
        self._access = access
        self._metrics = metrics
        self._sessions = sessions
        self.gate = Gate(_CONCURRENT, _QUEUED)

    def upload(
        self, repository_root: str, session_id: str, host: str, stream: Iterable[bytes]
    ) -> HostFile:
        """Keep ``stream`` as the profile of ``host`` (default ``upload``) in a new session.

        ``session_id`` is by default made from the clock, as captures do. The format is known by
        the first MiB; a gzip file is unpacked while it is written, to be sure that it may be
        opened, and a text is searched for something to read. Raises ExistsError, ForbiddenError on
        a read-only server, UsageError for a bad name or too many bytes (ExpandsError when they are
        too many unpacked), UnknownFormatError or InputError for what is no profile or cannot be
        opened; nothing is stored then.
        """
        if self._settings.read_only:
            raise ForbiddenError("this server is read-only: it stores no uploads")
        if session_id:
            check_name("session id", session_id)
        host = check_name("host", host or _HOST)
        repository = self._access.new_repository(repository_root)
        with self._sessions.making(repository, session_id) as name, self.gate.enter():
            blocks = _Counted(stream, self._settings.max_upload_bytes, self._metrics)
            head = _head(blocks)
            suffix, form = _form(head)

            def write(file: BinaryIO) -> None:
                content = _Content(head, form, self._settings.max_unpacked_bytes)
                for block in chain((head,), blocks):
                    content.feed(block)
                    file.write(block)
                content.finish()
                file.flush()
                check_opens(f"{host}{suffix}", file.fileno(), self._settings.max_unpacked_bytes)

            with repository.create_session(name) as session:
                stored = session.write(host, write, suffix=suffix)
        self._metrics.uploaded(blocks.total)
        return stored


class _Counted(Iterator[bytes]):
    """The blocks of a stream, no more bytes than are allowed, and no longer than the deadline."""

    def __init__(self, stream: Iterable[bytes], most: int, metrics: Metrics) -> None:
        self._blocks = iter(stream)
        self._most = most
        self._metrics = metrics
        self.total = 0

    def __next__(self) -> bytes:
        check_deadline()
        block = next(self._blocks)
        self.total += len(block)
        if self.total > self._most:
            self._metrics.refused("size")
            raise UsageError(f"the upload is larger than {self._most} bytes (--max-upload)")
        return block


class _Content:
    """What is in a file, looked at while it is stored."""

    def __init__(self, head: bytes, form: str, most: int) -> None:
        from peakline.formats.log.reader import LogProbe

        self._decoder = zlib.decompressobj(_GZIP_WINDOW) if head.startswith(_GZIP) else None
        self._probe = LogProbe() if form == _LOG else None
        self._most = most
        self._total = 0
        self._is_broken = False

    def feed(self, block: bytes) -> None:
        """The next bytes. Raises ExpandsError when they are too many unpacked."""
        look = (lambda _: None) if self._probe is None else self._probe.feed
        if self._decoder is None:
            look(block)
            return
        while block and not self._is_broken:
            check_deadline()
            if self._decoder.eof:  # another member, or what pads the file
                block = block.lstrip(b"\0")
                self._decoder = zlib.decompressobj(_GZIP_WINDOW)
            try:
                piece = self._decoder.decompress(block, _PIECE_BYTES)
            except zlib.error:
                # Readers take what is whole, and report the damage.
                self._is_broken = True
                return
            self._total += len(piece)
            if self._total > self._most:
                raise ExpandsError(
                    f"the upload expands to more than {self._most} bytes (--max-unpacked)"
                )
            look(piece)
            decoder = self._decoder
            block = decoder.unused_data if decoder.eof else decoder.unconsumed_tail

    def finish(self) -> None:
        """All has come. Raises UnknownFormatError for a text with nothing to read in it."""
        if self._probe is not None and not self._probe.finish():
            raise UnknownFormatError(
                "the upload is not a profile that Peakline reads (a text without a memory record"
                " and without an out-of-memory report)"
            )


def _head(blocks: Iterator[bytes]) -> bytes:
    """The first bytes: a MiB, or all there are."""
    head = bytearray()
    for block in blocks:
        head += block
        if len(head) >= _HEAD_BYTES:
            break
    if not head:
        raise InputError("the upload is empty")
    return bytes(head)


def _form(head: bytes) -> tuple[str, str]:
    """What the file is called after its host, and its format; UnknownFormatError, InputError."""
    packed = head.startswith(_GZIP)
    content = head
    if packed:
        try:
            content = zlib.decompressobj(_GZIP_WINDOW).decompress(head, _HEAD_BYTES)
        except zlib.error as error:
            raise InputError(f"the upload is a damaged gzip file: {error}") from None
        if not content:
            raise InputError("the upload is a gzip file with nothing in it")
    form = recognise(content[:_HEAD_BYTES])
    if not form.format:
        raise UnknownFormatError(
            f"the upload is not a profile that Peakline reads ({form.note or 'unknown content'})"
        )
    kind = formats()[form.format]
    name = kind.suffix if form.encoding == "binary" else Format.suffix
    return (f"{name}.gz" if packed and name != Format.suffix else name), form.format
