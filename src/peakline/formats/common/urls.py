"""Places named by a URL, opened through fsspec."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

from peakline.deadline import check_deadline
from peakline.errors import InputError, NotFoundError, PeaklineError, UsageError
from peakline.extras import missing_extra
from peakline.progress import advance, current_progress, stage

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
"""The extra of this package that brings the driver of a protocol."""
_HTTP = "aiohttp"
"""What fsspec's driver of http and https imports."""

_BLOCK = 16 << 20
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
        raise UsageError(f"{url}: cannot be opened: {one_line(error)}") from error
    return system, str(path)


def one_line(error: BaseException) -> str:
    """What an error of a driver says, in one line of bounded length."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
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


def spooled(url: str, storage_options: Mapping[str, object] | None = None) -> BinaryIO:
    """The content of ``url`` in a temporary file without a name, which goes when it is closed.

    It is read once from the beginning to the end, in blocks of 16 MiB, never as a whole. Raises
    UsageError, NotFoundError or InputError.
    """
    system, path = connect(url, storage_options)
    # The caller closes it: it is the local form of the file.
    spool = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with (
            reading(url),
            system.open(path, "rb", block_size=_block(system)) as stream,
            stage("downloading", _size(system, path, stream)),
        ):
            while block := stream.read(_BLOCK):
                check_deadline()
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
