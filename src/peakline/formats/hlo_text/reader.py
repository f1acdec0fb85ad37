"""Readers of XLA's text dumps: programs, and assignments of their buffers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Set as AbstractSet

from peakline.errors import DamagedError, InputError, NotFoundError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import ReportingReader
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings


class _TextReader(ReportingReader):
    """A text that is translated when it is opened."""

    __retained__ = "_file _modules _losses"
    tables: frozenset[str] = frozenset()

    def __init__(self, file: SourceFile, form: str) -> None:
        super().__init__(file, form)
        try:
            self._modules, self._losses = self._translate(file.buffer.tobytes())
        except InputError as error:
            offset = getattr(error, "offset", None)
            raise DamagedError(f"{self.path}: {error}", offset) from None

    @abstractmethod
    def _translate(self, text: bytes) -> tuple[list[tuple[str, bytes]], Warnings]:
        """The programs of ``text`` and what was lost."""

    def hlo_modules(self) -> list[tuple[str, bytes]]:
        """The programs: name and HloProto."""
        return self._modules

    def _table(self, table: str, columns: AbstractSet[str] | None) -> Columns:
        del columns
        raise NotFoundError(f"{self.path}: no table {table}")

    def _report(self, warnings: Warnings) -> None:
        for kind, count, detail in self._losses.entries():
            warnings.add(kind, detail, count)

    def duration_ps(self) -> int:
        """A program has no time."""
        return 0


class HloTextReader(_TextReader):
    """HLO text: one program or several, one behind the other."""

    def _translate(self, text: bytes) -> tuple[list[tuple[str, bytes]], Warnings]:
        from peakline.formats.hlo_text.module import translate_modules

        return translate_modules(text)


class HloAssignmentReader(_TextReader):
    """The text of a buffer assignment or of a memory usage report: one program."""

    def _translate(self, text: bytes) -> tuple[list[tuple[str, bytes]], Warnings]:
        from peakline.formats.hlo_text.program import module_name, translate_program

        name = module_name(self.path)
        program, losses = translate_program(text, name)
        return [(name, program)], losses
