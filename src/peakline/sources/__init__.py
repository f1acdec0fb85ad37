"""Formats: one package each. `open_reader` recognises a file by its content."""

from __future__ import annotations

from peakline.errors import DamagedError, UnknownFormatError
from peakline.profile.reader import Reader
from peakline.sources.files import SourceFile
from peakline.sources.xplane.detect import looks_like_xspace, reads_cleanly, went_through_text
from peakline.wire import help_first_run

__all__ = ["open_reader"]


def open_reader(path: str) -> Reader:
    """Open ``path`` with the source that recognises its content.

    Raises NotFoundError, InputError (unreadable, empty), UnknownFormatError, or DamagedError.
    """
    file = SourceFile(path)
    reason = looks_like_xspace(file.buffer)
    if went_through_text(file.buffer) and not reads_cleanly(file.buffer):
        file.close()
        raise DamagedError(
            f"{path}: the bytes went through a text (UTF-8) conversion and cannot be restored; "
            "copy the file again in binary mode"
        )
    if reason is not None:
        file.close()
        raise UnknownFormatError(f"{path}: not a profile that Peakline reads ({reason})")
    from peakline.sources.xplane.reader import XPlaneReader

    help_first_run()
    return XPlaneReader(file)
