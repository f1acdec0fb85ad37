"""Every error Peakline raises on purpose, its exit code and its gRPC status.

::

    PeaklineError                     70  INTERNAL            our own fault
    |-- UnforeseenError               70  INTERNAL            a file broke its reader
    |-- UsageError                     2  INVALID_ARGUMENT    a bad option, parameter or name
    |   |-- ExistsError                2  ALREADY_EXISTS      what was to be created is there
    |   `-- ForbiddenError             2  PERMISSION_DENIED   outside what the server allows
    |-- CheckFailed                    1  FAILED_PRECONDITION a check or a refused query
    |-- NotFoundError                  3  NOT_FOUND           no such file, session, host, tool
    |-- InputError                     3  INVALID_ARGUMENT    the input cannot be read
    |   |-- UnknownFormatError         3  INVALID_ARGUMENT    no source recognises the bytes
    |   |-- DamagedError               3  DATA_LOSS           bytes broken; carries the offset
    |   `-- StrictError                3  DATA_LOSS           warnings under ``--strict``
    |-- OutputError                    3  RESOURCE_EXHAUSTED  the output cannot be written
    |-- RemoteError                    4  UNAVAILABLE         a remote host or capture failed
    |-- DeadlineError                  4  DEADLINE_EXCEEDED   the time for the answer is over
    |-- CancelledError                 4  CANCELLED           nobody waits for the answer any more
    `-- BusyError                      4  RESOURCE_EXHAUSTED  too many requests at once

A message is one line: what, where, what to do.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Self

from peakline.safe_text import for_log

__all__ = [
    "BusyError",
    "CancelledError",
    "CheckFailed",
    "DamagedError",
    "DeadlineError",
    "ExistsError",
    "ForbiddenError",
    "InputError",
    "NotFoundError",
    "OutputError",
    "PeaklineError",
    "RemoteError",
    "StrictError",
    "UnforeseenError",
    "UnknownFormatError",
    "UsageError",
]


class PeaklineError(Exception):
    """The root of every error raised on purpose."""

    exit_code: ClassVar[int] = 70
    grpc_status: ClassVar[str] = "INTERNAL"
    quotes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The message, also in a traceback that somebody else prints into the log of a job."""
        return for_log(super().__str__())

    def quoting(self, *texts: str) -> Self:
        """This error, whose message repeats what the caller wrote: ``texts``, as they stand in it.

        A server takes its own paths out of messages, and leaves what callers wrote as it is.
        """
        self.quotes = texts
        return self


class UsageError(PeaklineError):
    """A bad option, parameter or name."""

    exit_code = 2
    grpc_status = "INVALID_ARGUMENT"


class ExistsError(UsageError):
    """What was to be created is there already."""

    grpc_status = "ALREADY_EXISTS"


class ForbiddenError(UsageError):
    """The request leaves what the server allows."""

    grpc_status = "PERMISSION_DENIED"


class CheckFailed(PeaklineError):
    """A limit was broken or a query was refused."""

    exit_code = 1
    grpc_status = "FAILED_PRECONDITION"


class NotFoundError(PeaklineError):
    """A file, session, host or tool does not exist."""

    exit_code = 3
    grpc_status = "NOT_FOUND"


class InputError(PeaklineError):
    """The input exists but cannot be read."""

    exit_code = 3
    grpc_status = "INVALID_ARGUMENT"


class UnknownFormatError(InputError):
    """No source recognises the bytes."""


class DamagedError(InputError):
    """The bytes are broken at ``offset`` (counted from the start of the decoded file)."""

    grpc_status = "DATA_LOSS"

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class StrictError(InputError):
    """Warnings were found and the caller requires ``strict``."""

    grpc_status = "DATA_LOSS"


class OutputError(PeaklineError):
    """The output cannot be written: the disk is full, nobody reads the pipe."""

    exit_code = 3
    grpc_status = "RESOURCE_EXHAUSTED"


class RemoteError(PeaklineError):
    """A remote host or a capture failed."""

    exit_code = 4
    grpc_status = "UNAVAILABLE"


class DeadlineError(PeaklineError):
    """The time for the answer is over."""

    exit_code = 4
    grpc_status = "DEADLINE_EXCEEDED"


class CancelledError(PeaklineError):
    """Nobody waits for the answer any more."""

    exit_code = 4
    grpc_status = "CANCELLED"


class BusyError(PeaklineError):
    """Too many requests at once; the same request may succeed later."""

    exit_code = 4
    grpc_status = "RESOURCE_EXHAUSTED"


NO_DESCRIPTOR = frozenset((errno.EMFILE, errno.ENFILE))
"""What the system says where as many files are open as may be: a BusyError, as nothing is wrong
with the file."""


class UnforeseenError(PeaklineError):
    """A file broke what reads it, as nobody foresaw: a fault of Peakline's.

    The message names the file and the kind of the fault, and no more, as callers from elsewhere
    see it; ``trace`` is the traceback, as text: frames would hold what they refer to.
    """

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace

    def log(self) -> None:
        """Add it with its traceback to the log of the standard library, as ``peakline``."""
        import logging

        logger = logging.getLogger("peakline")
        if not logger.handlers:
            # Without any the library would print on standard error by itself.
            logger.addHandler(logging.NullHandler())
        logger.error("%s\n%s", self, self.trace)


def fault_of(path: str, error: Exception) -> PeaklineError:
    """What to say of ``error``, which nobody foresaw, of the file ``path``: an `UnforeseenError`,
    which is logged, or an InputError where there is not enough memory.
    """
    if isinstance(error, MemoryError):
        return InputError(f"{path}: there is not enough memory to read it")
    import traceback

    fault = UnforeseenError(
        f"{path}: unexpected {type(error).__name__}, a fault of Peakline's",
        "".join(traceback.format_exception(error)),
    )
    fault.log()
    return fault


@contextmanager
def faults_of(path: str) -> Iterator[None]:
    """Hold what fails while the file ``path`` is read, in the block, to that file.

    Errors raised on purpose pass, and whatever else is raised becomes its `fault_of`, so that
    whoever reads many files names this one and goes on with the others.
    """
    try:
        yield
    except PeaklineError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever it is, it is named)
        raise fault_of(path, error) from None
