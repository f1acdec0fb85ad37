"""Readers of XLA's text dumps: programs, and assignments of their buffers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Set as AbstractSet
from functools import partial

from peakline.errors import DamagedError, InputError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader
from peakline.formats.hlo_dump.listing import named_by
from peakline.formats.hlo_proto.source import StoredProgram
from peakline.formats.hlo_proto.tables import ProgramTables
from peakline.formats.hlo_text.module import translate_modules
from peakline.formats.hlo_text.program import module_name, translate_program
from peakline.tables.columns import Columns
from peakline.tables.program_tables import PROGRAM_TABLES
from peakline.tables.reader import Warnings
from peakline.wire import as_buffer


class _TextReader(FileReader):
    """A text that is translated when it is opened."""

    __retained__ = "_file _programs _losses"
    tables = PROGRAM_TABLES

    def __init__(self, file: SourceFile, form: str) -> None:
        super().__init__(file, form)
        try:
            programs, self._losses = self._translate(file.buffer.tobytes())
        except InputError as error:
            offset = getattr(error, "offset", None)
            raise DamagedError(f"{self.path}: {error}", offset) from None
        named = named_by(self.path) if len(programs) == 1 else None
        number, backend = (named.program_id, named.backend) if named else (None, "")
        self._programs = ProgramTables(
            [
                StoredProgram(name, number, backend, partial(as_buffer, program))
                for name, program in programs
            ]
        )

    @abstractmethod
    def _translate(self, text: bytes) -> tuple[list[tuple[str, bytes]], Warnings]:
        """The programs of ``text`` and what was lost."""

    def programs(self) -> ProgramTables:
        """The programs."""
        return self._programs

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table; the first reading also counts what the translation lost."""
        for kind, count, detail in self._losses.entries():
            warnings.add(kind, detail, count)
        self._losses = Warnings()
        return self._programs.table(table, warnings, columns)

    def duration_ps(self) -> int:
        """A program has no time."""
        return 0


class HloTextReader(_TextReader):
    """HLO text: one program or several, one behind the other."""

    def _translate(self, text: bytes) -> tuple[list[tuple[str, bytes]], Warnings]:
        return translate_modules(text)


class HloAssignmentReader(_TextReader):
    """The text of a buffer assignment or of a memory usage report: one program."""

    def _translate(self, text: bytes) -> tuple[list[tuple[str, bytes]], Warnings]:
        name = module_name(self.path)
        program, losses = translate_program(text, name)
        return [(name, program)], losses
