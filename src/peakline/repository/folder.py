"""A folder of files that appears, or is replaced, only when all of them are whole."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from peakline.errors import ExistsError, UsageError
from peakline.repository.cleaning import lock, temporary_name
from peakline.repository.writing import remove_left, unwritable


@contextmanager
def whole_folder(output: str, stale: Collection[str], *, force: bool) -> Iterator[Path]:
    """A folder to write into, which becomes ``output`` when the block ends well.

    A new folder is made beside ``output`` and gets its name; into one that is there the files are
    moved, and with ``force``, which one with files needs, replace those of the same names. Files
    named in ``stale`` that were not written are removed, others stay. When the block raises, or
    the process gets SIGTERM, ``output`` is as it was.
    Raises ExistsError for a folder with files without ``force``, UsageError for what is no folder,
    cannot be written, or has something else than a file under a name to replace, OutputError when
    the disk is full.
    """
    place = Path(output)
    if place.exists() and not place.is_dir():
        raise UsageError(f"{output}: is no folder")
    is_there = place.is_dir()
    if is_there and not force and any(place.iterdir()):
        raise ExistsError(f"{output}: is not empty; use --force to replace files in it")
    # In a folder that is there, which may be a file system of its own, files can be moved.
    parent = place if is_there else place.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        remove_left(parent)
        temporary, descriptor = _locked_folder(parent)
    except OSError as error:
        raise unwritable(output, error) from error
    try:
        with _ended_by_sigterm():
            yield temporary
            try:
                if is_there:
                    _move(temporary, place, stale)
                else:
                    temporary.rename(place)
            except OSError as error:
                raise unwritable(output, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """A new folder that nobody takes for one that was left."""
    while True:
        folder = parent / temporary_name()
        folder.mkdir()
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # Who looks for what was left may have locked it first, and will have removed it then.
            lock(descriptor, wait=True)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def _move(source: Path, target: Path, stale: Collection[str]) -> None:
    files = {path.name for path in source.iterdir()}
    for name in sorted(files.union(stale)):
        place = target / name
        if place.is_symlink() or (place.exists() and not place.is_file()):
            raise UsageError(f"{place}: is no regular file, and is not replaced")
    for name in stale:
        if name not in files:
            (target / name).unlink(missing_ok=True)
    for name in sorted(files):
        (source / name).replace(target / name)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Within the block SIGTERM ends the process as an exception does, so that it is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
