"""What is near to a name that is not known, and the names there are: the end of a message."""

from __future__ import annotations

from collections.abc import Iterable

from peakline.safe_text import one_line

_NEAR = 0.6
"""The least likeness, from 0 to 1, of a name that is suggested: `difflib`'s ratio."""
_WORSE = 0.1
"""By so much less is a name like it than the nearest, and not suggested any more."""
_FEW = 4
"""A name of so few characters is like many others: only what one slip of a finger makes of another
is suggested.
"""
_SUGGESTED = 3
_SHORT, _LISTED = 12, 20
_LONGEST = 200
"""Characters that are compared, of a name and of those there are: the time grows with them."""
_COMPARED = 5000
"""So many names are compared: a profile may have millions."""


def near(name: str, known: Iterable[str]) -> list[str]:
    """Those of ``known`` that ``name`` may have been meant for, the nearest first; at most three.

    Case counts for nothing. A name that has ``name`` as a part of it (of three characters and
    more) is near, too.
    """
    from difflib import SequenceMatcher, get_close_matches
    from itertools import islice

    wanted = name[:_LONGEST].casefold()
    if len(wanted) < 2:
        return []
    by_folded: dict[str, str] = {}
    for one in islice(known, _COMPARED):
        by_folded.setdefault(one[:_LONGEST].casefold(), one)
    result = get_close_matches(wanted, by_folded, _SUGGESTED, _NEAR)
    if len(wanted) <= _FEW:
        result = [one for one in by_folded if _is_slip(one, wanted)][:_SUGGESTED]
    likeness = [SequenceMatcher(None, one, wanted).ratio() for one in result]
    result = [
        one for one, like in zip(result, likeness, strict=True) if like > likeness[0] - _WORSE
    ]
    if len(wanted) > 2:
        parts = [folded for folded in by_folded if wanted in folded]
        if len(parts) <= _SUGGESTED:
            result += [part for part in parts if part not in result]
    return [by_folded[folded] for folded in result[:_SUGGESTED]]


def _is_slip(one: str, other: str) -> bool:
    """Whether a character too many, too few or wrong, or two swapped, are all that differs."""
    if abs(len(one) - len(other)) > 1:
        return False
    begin = _common(one, other)
    end = _common(one[begin:][::-1], other[begin:][::-1])
    mine, its = one[begin : len(one) - end], other[begin : len(other) - end]
    return max(len(mine), len(its)) < 2 or (len(mine) == len(its) == 2 and mine == its[::-1])


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def there_is(name: str, known: Iterable[str], *, most: int = _LISTED) -> str:
    """``; did you mean 'loss'? there is: loss, lr``: what a message about an unknown name ends in.

    Of many names the first ``most`` are listed, and none where some are near. Names may be
    foreign: they are made fit for one line.
    """
    names = list(known)
    close = near(name, names)
    meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    if close and len(names) > _SHORT:
        return meant
    more = f" and {len(names) - most} more" if len(names) > most else ""
    listed = ", ".join(one_line(one)[:_LONGEST] or '""' for one in names[:most])
    return f"{meant}{'' if meant else ';'} there is: {listed or 'none'}{more}"
