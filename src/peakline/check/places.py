"""Where in the source a failed check points: at the line that makes most of a program's memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from peakline.check.verdict import Check

if TYPE_CHECKING:
    from peakline.tables import Profile

Place = tuple[str, int]
"""A file, from the working directory where it lies below it, and a line from 1."""


def places_of(profile: Profile, checks: Sequence[Check]) -> list[Place | None]:
    """A place for each check; None where the profile knows none. Only failed ones are searched."""
    wanted = {check.program for check in checks if check.is_of_program and not check.passed}
    known = _program_places(profile, wanted - {""}) if wanted - {""} else {}
    return [None if check.passed else known.get(check.program) for check in checks]


def _program_places(profile: Profile, labels: set[str]) -> dict[str, Place]:
    from peakline.timing.program_answer import ProgramAnswer

    found: dict[str, Place] = {}
    for number in range(len(profile.programs() or ())):
        answer = ProgramAnswer(profile, number)
        if answer.label not in labels:
            continue
        lines: dict[tuple[str, int], int] = {}
        for value in answer.live:
            if value.source_file and value.source_line:
                line = (value.source_file, value.source_line)
                lines[line] = lines.get(line, 0) + value.bytes
        if lines:
            file, line_number = max(lines, key=lambda line: lines[line])
            found[answer.label] = (near(file), line_number)
    return found


def near(file: str) -> str:
    """``file`` as seen from the working directory: below it, or where its last parts are there too
    (the program ran on another machine, from another place). Any other as it is.
    """
    here, path = Path.cwd(), Path(file)
    if path.is_absolute() and path.is_relative_to(here):
        return path.relative_to(here).as_posix()
    parts = PurePosixPath(file.replace("\\", "/")).parts
    for count in range(1, len(parts)):
        rest = Path(*parts[count:])
        if ".." not in rest.parts and (here / rest).is_file():
            return rest.as_posix()
    return file
