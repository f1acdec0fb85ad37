"""Places named by a URL, opened through fsspec."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

from peakline.deadline import check_deadline
from peakline.errors import InputError, NotFoundError, PeaklineError, UsageError
from peakline.extras import missing_extra
from peakline.progress import advance, current_progress, stage
from peakline.text import parse_size, size_text

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
"""The extra of this package that brings the driver of a protocol."""
_HTTP = "aiohttp"
"""What fsspec's driver of http and https imports."""

_BLOCK = 16 << 20
MOST_ENV = "PEAKLINE_MAX_DOWNLOAD"
"""The variable of the environment that says how large a file may be that comes from a URL."""
_MOST_BYTES = 16 << 30
_LEFT_BYTES = 256 << 20
"""What stays free of the disk of temporary files."""
_SLOW_S, _SLOW_BYTES = 60.0, 64 << 10
"""A server that sends fewer bytes in that time sends nothing for a while, or a few for ever."""
_LONGEST_REASON = 300


def connect(url: str, storage_options: Mapping[str, object] | None = None) -> tuple[Any, str]:
    """The fsspec file system of ``url`` and the path in it.

    Listings are never answered from fsspec's memory of earlier ones, unless the
    ``storage_options`` say so. Raises UsageError for a protocol that is unknown, whose driver is
    not installed, or that does not take the options.
    """
    import fsspec

    options = {"use_listings_cache": False, **(storage_options or {})}
    try:
        if url.lower().startswith(("http://", "https://")):
            from fsspec.implementations.http import aiohttp

            # By default it gives a whole answer five minutes, and a silent server as long.
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SLOW_S, sock_read=_SLOW_S)
            options.setdefault("client_kwargs", {"timeout": timeout})
        system, path = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        protocol = url.partition("://")[0].rpartition("::")[2].lower()
        extra = _EXTRAS.get(protocol)
        if extra is not None:
            raise missing_extra(extra, f"{protocol}://") from error
        if protocol in ("http", "https"):
            raise UsageError(
                f"{protocol}:// needs {_HTTP}, which is not installed; type: pip install {_HTTP}"
            ) from error
        reason = one_line(error)
        raise UsageError(f"{url}: the driver for {protocol}:// is missing: {reason}") from error
    except PeaklineError:
        raise
    except Exception as error:
        hint = f"; a path is ./{url}" if "Protocol not known" in str(error) else ""
        raise UsageError(f"{url}: cannot be opened: {one_line(error)}{hint}") from error
    return system, str(path)


def one_line(error: BaseException) -> str:
    """What an error of a driver says, in one line of bounded length."""
    text = getattr(error, "strerror", None) or str(error)
    if not text:
        text = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    return " ".join(str(text).split())[:_LONGEST_REASON]


def reason_of(error: BaseException) -> tuple[bool, str]:
    """Whether ``error`` of a driver says that there is nothing, and the reason in one line."""
    cause = error.__cause__
    absent = (FileNotFoundError, NotADirectoryError)
    if isinstance(error, absent) and isinstance(cause, OSError) and not isinstance(cause, absent):
        # The driver of http says so of a server that it cannot reach, too.
        return False, one_line(cause)
    if isinstance(error, absent):
        return True, "No such file or directory"
    if isinstance(error, PermissionError):
        return False, "Permission denied"
    return False, one_line(error)


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Errors of a driver as NotFoundError or InputError that name the URL.

    Drivers raise their client library's own classes as well as OSError, so any class is meant.
    """
    try:
        yield
    except PeaklineError:
        raise
    except Exception as error:
        missing, reason = reason_of(error)
        if missing:
            raise NotFoundError(f"{url}: no such file") from error
        raise InputError(f"{url}: cannot be read: {reason}") from error


def _block(system: Any) -> int:
    """The bytes of a request; 0, one request for all, over HTTP: not every server knows ranges."""
    return 0 if "http" in (system.protocol, *system.protocol) else _BLOCK


def _size(system: Any, path: str, stream: Any) -> int:
    """The bytes of a file, 0 where nobody knows or wants them."""
    size = getattr(stream, "size", None)
    if size is None and current_progress() is not None:
        size = system.size(path)
    return int(size or 0)


def _most_bytes() -> int:
    text = os.environ.get(MOST_ENV, "")
    try:
        return parse_size(text) if text else _MOST_BYTES
    except UsageError as error:
        raise UsageError(f"{MOST_ENV}: {error}") from None


class _Watch:
    """Raises InputError for a download of more than ``most`` bytes, or than the disk has room for,
    and for one that does not come on.
    """

    def __init__(self, url: str, most: int) -> None:
        self._url, self._most = url, most
        self._total = self._checked = self._before = 0
        self._begin = time.monotonic()

    def add(self, count: int, *, is_there: bool = True) -> None:
        """So many bytes more, or that so many are to be expected."""
        total = self._total + count
        if total > self._most:
            limit = size_text(self._most)
            raise InputError(f"{self._url}: has more than {limit}; {MOST_ENV}=SIZE allows more")
        if not is_there or total >= self._checked:
            self._checked = total + _BLOCK
            place = tempfile.gettempdir()
            room = shutil.disk_usage(place).free - _LEFT_BYTES
            if room < max(count, 0):
                raise InputError(
                    f"{self._url}: no room for it in {place}, with {size_text(total)}; TMPDIR "
                    "names another directory"
                )
        if not is_there:
            return
        self._total = total
        now = time.monotonic()
        if now - self._begin > _SLOW_S:
            came = total - self._before
            if came < _SLOW_BYTES:
                raise InputError(
                    f"{self._url}: only {came} bytes came in {now - self._begin:.0f} s; try again"
                )
            self._begin, self._before = now, total


def spooled(url: str, storage_options: Mapping[str, object] | None = None) -> BinaryIO:
    """The content of ``url`` in a temporary file without a name, which goes when it is closed.

    It is read once from the beginning to the end, in blocks of 16 MiB, never as a whole, and has at
    most 16 GiB, or what `MOST_ENV` says. Raises UsageError, NotFoundError or InputError, which also
    says that it is larger, that the disk is full or that hardly anything comes.
    """
    most = _most_bytes()
    system, path = connect(url, storage_options)
    # The caller closes it: it is the local form of the file.
    spool = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with (
            reading(url),
            system.open(path, "rb", block_size=_block(system)) as stream,
            stage("downloading", size := _size(system, path, stream)),
        ):
            watch = _Watch(url, most)
            watch.add(size, is_there=False)
            while block := stream.read(_BLOCK):
                check_deadline()
                watch.add(len(block))
                spool.write(block)
                advance(len(block))
        spool.seek(0)
    except OSError as error:
        spool.close()
        raise InputError(f"{url}: cannot be read: {one_line(error)}") from error
    except BaseException:
        spool.close()
        raise
    return spool
