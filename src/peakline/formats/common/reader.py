"""What the readers of all formats have in common: the file."""

from __future__ import annotations

from peakline.formats.common.files import SourceFile
from peakline.tables.reader import Reader


class FileReader(Reader):
    """A `Reader` of one file, which it closes; ``form`` is the format's name."""

    def __init__(self, file: SourceFile, form: str) -> None:
        self.format, self.path = form, file.path
        self._file = file

    def close(self) -> None:
        """Release the file."""
        self._file.close()
