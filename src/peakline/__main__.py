"""The entry point: words in, one exit code out.

It imports next to nothing itself, so that an interrupt while the command line is being imported
ends as quietly as one later: with the exit code 130 and no traceback.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator, Sequence

from peakline.safe_text import guarded_streams, own_lines

_ANNOTATIONS = "--annotations"
_DEBUG = "--debug"
_VERSION = "--version"
_BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended
_INTERRUPTED = 130
_OUR_FAULT = 70
_UNWRITTEN = 3
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with ``arguments`` (default: those of the process).

    Returns the exit code. An error is one line on standard error; ``--debug`` adds the
    traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = words[: words.index("--")] if "--" in words else words
    debug = _DEBUG in options
    if debug:
        words.remove(_DEBUG)
    # Nothing here multiplies matrices, and OpenBLAS, which comes with NumPy, would start a thread
    # for every core: about 90 ms of the processor at every start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if arguments is None:
        # Processes that libraries start (Dask's) would import from the working directory, which may
        # be anybody's repository; those of a program that calls this are its own.
        os.environ.setdefault("PYTHONSAFEPATH", "1")
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks must not end the program.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with guarded_streams(always=any(word.startswith(_ANNOTATIONS) for word in options)):
        return _result(words, debug=debug)


def _result(words: list[str], *, debug: bool) -> int:
    """The exit code of the verb, whatever happens in it."""
    try:
        with _shown_faults() if debug else contextlib.nullcontext():
            code = _run(words, debug=debug)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  (whatever happens, one line and an exit code)
        if debug:
            import traceback

            sys.stderr.write(own_lines("".join(traceback.format_exception(error))))
        from peakline.render.terminal.output import say

        message, code = _verdict(error)
        say(message)
        if isinstance(error, OSError):
            _abandon_output()
        return code
    return code


@contextlib.contextmanager
def _shown_faults() -> Iterator[None]:
    """Show the tracebacks of files that are left out because they broke what reads them."""
    import logging

    class _Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            sys.stderr.write(own_lines(record.getMessage()))

    logger, handler = logging.getLogger("peakline"), _Shown()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _open_streams() -> None:
    """A process may be started without its standard streams; then what is written goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            from pathlib import Path

            # Open as long as the process is.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _run(words: list[str], *, debug: bool) -> int:
    """Parse and run. Click's own entry point would answer a broken pipe with a failed check."""
    if words[:1] == [_VERSION]:
        import peakline

        print(f"peakline {peakline.__version__}")
        return 0
    from click.exceptions import Exit

    from peakline.cli import COMPLETE
    from peakline.cli.main import app

    if COMPLETE in os.environ:
        from peakline.cli.completion import complete

        return complete(app, os.environ[COMPLETE])
    try:
        with app.make_context("peakline", words, obj=debug) as context:
            app.invoke(context)
    except Exit as finished:
        return finished.exit_code
    return 0


def _verdict(error: Exception) -> tuple[str, int]:
    """The message and the exit code for ``error``."""
    from peakline.errors import PeaklineError, UnforeseenError

    if isinstance(error, UnforeseenError):
        return f"{error} (--debug shows where)", error.exit_code
    if isinstance(error, PeaklineError):
        return str(error), error.exit_code
    complaint = getattr(error, "format_message", None)
    if complaint is not None:
        # A usage error of the argument parser, which is imported only where it is needed.
        context = getattr(error, "ctx", None)
        verb = context.command_path if context is not None else "peakline"
        message = " ".join(complaint().split()).rstrip(".")
        return f"{message}; see {verb} --help", 2
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
        return f"standard output cannot be written: {error.strerror}", _UNWRITTEN
    if isinstance(error, MemoryError):
        return "out of memory", _OUR_FAULT
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)", _OUR_FAULT


def _abandon_output() -> None:
    """Nobody reads standard output any more: what is left in its buffer goes nowhere."""
    from pathlib import Path

    with contextlib.suppress(io.UnsupportedOperation), Path(os.devnull).open("wb") as sink:
        os.dup2(sink.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
