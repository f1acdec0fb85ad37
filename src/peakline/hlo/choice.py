"""Which compiled program of a profile somebody means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.errors import NotFoundError, UsageError
from peakline.suggest import there_is

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.tables.programs import Programs

_LISTED = 10


def choose_program(profile: Profile, module_name: str = "", program_id: str = "") -> int:
    """The number of the program called so: its name, its id, or the name with the id in
    parentheses; never a part of a name. Where none is named the only one is meant.

    Raises NotFoundError where there is none, naming those there are, and UsageError where several
    have the name, or there are several and none is named.
    """
    programs = profile.programs()
    every = range(len(programs)) if programs is not None else range(0)
    if programs is None or not every:
        raise NotFoundError(f"{profile.path}: no compiled programs")
    wanted = module_name or program_id
    if not wanted:
        if len(every) == 1:
            return 0
        known = _listed(programs)
        raise UsageError(f"{profile.path}: {len(every)} programs; say module_name: {known}")
    ids = {number: str(programs.program_id(number)) for number in every}
    names = {number: programs.name(number) for number in every}
    by_id = [number for number in every if ids[number] == (program_id or module_name)]
    found = [
        number
        for number in every
        if module_name in (names[number], programs.label(number))
        and (not program_id or number in by_id)
    ]
    found = found if module_name and found else by_id
    if not found:
        known = there_is(wanted, map(programs.label, every))
        raise NotFoundError(f"{profile.path}: no program {wanted!r}{known}").quoting(repr(wanted))
    if len(found) > 1:
        labels = ", ".join(programs.label(number) for number in found)
        raise UsageError(f"{profile.path}: {len(found)} programs {wanted!r}; name one: {labels}")
    return found[0]


def _listed(programs: Programs) -> str:
    """The first programs by name, and how many more there are."""
    count = len(programs)
    known = ", ".join(programs.label(number) for number in range(min(count, _LISTED)))
    return known + (f" and {count - _LISTED} more" if count > _LISTED else "")
