"""The steps of a profile, and one of them by its id or its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.errors import NotFoundError

if TYPE_CHECKING:
    from peakline.tables.columns import Columns
    from peakline.tables.profile import Profile

__all__ = ["find_step", "steps_of"]


def steps_of(profile: Profile) -> Columns:
    """The table ``steps``; without rows where the format does not know them."""
    if "steps" in profile.tables:
        return profile.columns("steps")
    from peakline.tables.tables import empty_columns

    return empty_columns("steps")


def find_step(step: str, steps: Columns) -> int:
    """The id of the step given by id (``3``) or by name (``train 170``).

    Raises NotFoundError where there is none.
    """
    ids = steps.array("step_id").tolist()
    # Logs have negative ids too.
    if step.removeprefix("-").isdecimal() and int(step) in ids:
        return int(step)
    named = [i for i, name in zip(ids, steps.names("name").to_list(), strict=True) if name == step]
    if named:
        return int(named[0])
    if not ids:
        raise NotFoundError(f"no step {step!r}: the profile has no steps")
    raise NotFoundError(
        f"no step {step!r}; the profile has {len(ids)}, ids {min(ids)} to {max(ids)}"
    )
