"""What is made once for each profile, by the function that makes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from peakline.tables.profile import Profile

Made = TypeVar("Made")
Other = ParamSpec("Other")


def once(
    make: Callable[Concatenate[Profile, Other], Made],
) -> Callable[Concatenate[Profile, Other], Made]:
    """Let ``make`` run once for each profile, and each value of its other arguments.

    What it returned is shared by all who call it, counts in `Profile.nbytes` and is given up when
    the profile is closed. Several threads that want the same wait for the one that makes it; who
    wants something else does not. After an error the next call tries again.
    """

    @wraps(make)
    def find(profile: Profile, /, *args: Other.args, **named: Other.kwargs) -> Made:
        key = (make, args, tuple(sorted(named.items())))
        return profile.made_once(key, lambda: make(profile, *args, **named))

    return find
