"""A directory of dumped programs: each is read when something of it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path

import numpy as np

from peakline.errors import ForbiddenError, InputError, NotFoundError
from peakline.formats.common.files import SourceFile
from peakline.formats.hlo_dump.listing import DumpedProgram, listed
from peakline.formats.hlo_proto.reader import content_of
from peakline.formats.hlo_proto.source import StoredProgram
from peakline.formats.hlo_proto.tables import MOST_PROGRAMS, ProgramTables
from peakline.tables.columns import Columns
from peakline.tables.program_tables import PROGRAM_TABLES
from peakline.tables.reader import Reader, Warnings
from peakline.wire import Buffer

_USUAL_BYTES = 2 << 10
"""The message of a program of one op, with its metadata and buffer assignment, takes as much."""


class DumpReader(Reader):
    """The programs of a directory, which may be many GB; or those ``named``, wherever they are,
    which ``open_file`` opens.

    Raises InputError where the directory cannot be read.
    """

    __retained__ = "_programs _file _forms"

    format = "hlo_dump"
    tables = PROGRAM_TABLES

    def __init__(
        self,
        path: str,
        named: Sequence[DumpedProgram] | None = None,
        open_file: Callable[[str], SourceFile] = SourceFile,
    ) -> None:
        self.path, self._open_file = path, open_file
        self._unreadable: dict[str, str] = {}
        self._forms: dict[str, str] = {}
        self._file: SourceFile | None = None
        """That of the program that was loaded last: there are thousands."""
        self._is_reported = False
        try:
            result = listed(path) if named is None else named
            most = _most_programs(result) if named is None else MOST_PROGRAMS
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        self._programs = ProgramTables(
            [
                StoredProgram(p.name, p.program_id, p.backend, partial(self._load, p))
                for p in result[:most]
            ],
            max(len(result) - most, 0),
        )

    def _load(self, program: DumpedProgram) -> Buffer:
        self.close()
        try:
            content, self._file = content_of(
                program.path, program.assignment, program.live_ranges, self._forms, self._open_file
            )
        except (ForbiddenError, InputError, NotFoundError) as error:
            self._unreadable[program.path] = str(error)
            content = np.zeros(0, np.uint8)
        return content

    def programs(self) -> ProgramTables:
        """The programs."""
        return self._programs

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        result = self._programs.table(table, warnings, columns)
        self.report(warnings)
        return result

    def report(self, warnings: Warnings) -> None:
        """Count the programs that could not be read, once."""
        if self._unreadable and not self._is_reported:
            self._is_reported = True
            first = next(iter(self._unreadable.values()))
            count = len(self._unreadable)
            warnings.add("hlo_unreadable", f"dumps that cannot be read: {first}", count)

    def has_rows(self, table: str) -> bool:
        """As `Reader.has_rows`: the first program that has some is enough."""
        return self._programs.has_rows(table)

    def duration_ps(self) -> int:
        """0: programs have no time."""
        return 0

    def check(self) -> None:
        """As `SourceFile.check`, of the program that was loaded last."""
        if self._file is not None:
            self._file.check()

    def close(self) -> None:
        """Close the file of the program that was loaded last."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _most_programs(result: Sequence[DumpedProgram]) -> int:
    """How many programs are read: more than `MOST_PROGRAMS` where they are of a usual size."""
    if len(result) <= MOST_PROGRAMS:
        return MOST_PROGRAMS
    size = sum(Path(program.path).stat().st_size for program in result)
    return MOST_PROGRAMS + size // _USUAL_BYTES
