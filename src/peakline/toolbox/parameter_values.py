"""What a parameter's value means, whoever wrote it: a command line, a remote caller, a program.

Remote callers and command lines send text, so that text is understood for every type. Accepted is

- for a bool: the words of `_TRUTH` in any case, and the numbers 0 and 1;
- for an int: decimal digits, also ``+5``, ``007``, ``1_000``, ``2.0`` and with spaces around;
  a float that is whole;
- for a float: what Python reads as a finite one, such as ``1e3``, ``.5``, ``7``; any int;
- for a tuple: texts separated by commas, empty ones left out; a list, tuple or set of texts;
- for a text: the text itself; of a choice exactly one of its texts;
- None where the parameter may be None. The text ``None`` is a text.

NumPy's scalars are what their ``item()`` is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from types import NoneType
from typing import Any, Literal, get_args, get_origin

_TRUTH = dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "f", "n", "0"), False
)
_WHOLE = re.compile(r"([+-]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?")
_LARGEST_WHOLE = 1 << 53
"""Up to here a float holds every integer."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What is known of one parameter beside its name and its type.

    A number is in ``ge <= number <= le`` and ``< lt``; a text has at most ``max_length``
    characters and matches ``pattern`` as a whole. ``check`` returns the value, or raises a
    ValueError that says what is wrong with it. ``local_only``: not for remote callers. ``schema``
    is what its JSON schema says beyond that, which nobody checks here. One without a default
    (MISSING) has to be given.
    """

    default: Any = MISSING
    description: str
    ge: int | None = None
    le: int | None = None
    lt: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    check: Callable[[Any], Any] | None = None
    local_only: bool = False
    schema: Mapping[str, Any] = field(default_factory=dict)


def value_of(kinds: Sequence[Any], declared: Declaration, value: object) -> Any:
    """``value`` as one of the types ``kinds``, within the declared limits.

    Raises ValueError, whose text says what the value must be.
    """
    if value is None and NoneType in kinds:
        return None
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    kind = next(each for each in kinds if each is not NoneType)
    if get_origin(kind) is Literal:
        return _choice(value, get_args(kind))
    result = _READERS[get_origin(kind) or kind](value)
    for is_inside, limit in _limits(result, declared):
        if not is_inside:
            raise ValueError(limit)
    return result


def listed(text: str) -> tuple[str, ...]:
    """The items of a text that separates them by commas."""
    return tuple(filter(None, text.split(",")))


def _limits(value: Any, declared: Declaration) -> list[tuple[bool, str]]:
    """Every limit of a value, and whether it holds."""
    result = []
    if declared.ge is not None:
        result.append((value >= declared.ge, f"must be at least {declared.ge}"))
    if declared.le is not None:
        result.append((value <= declared.le, f"must be at most {declared.le}"))
    if declared.lt is not None:
        result.append((value < declared.lt, f"must be less than {declared.lt}"))
    if (longest := declared.max_length) is not None:
        result.append((len(value) <= longest, f"must have at most {longest} characters"))
    if (pattern := declared.pattern) is not None:
        result.append((bool(re.fullmatch(pattern, value)), f"must match {pattern}"))
    return result


def _choice(value: object, choices: Sequence[str]) -> str:
    if isinstance(value, str):
        for choice in choices:
            if value == choice:
                return choice
    *most, last = map(repr, choices)
    raise ValueError(f"must be {' or '.join(filter(None, (', '.join(most), last)))}")


def _bool(value: object) -> bool:
    if isinstance(value, str):
        result = _TRUTH.get(value.lower())
    else:
        result = bool(value) if isinstance(value, (int, float)) and value in {0, 1} else None
    if result is None:
        raise ValueError("must be true or false")
    return result


def _int(value: object) -> int:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if value.is_integer() and abs(value) <= _LARGEST_WHOLE:
            return int(value)
    elif isinstance(value, str) and (match := _WHOLE.fullmatch(value.strip())):
        try:
            return int(match[1])
        except ValueError:
            raise ValueError("must have fewer digits") from None
    raise ValueError("must be a whole number")


def _float(value: object) -> float:
    number = math.nan
    if isinstance(value, (int, float)) or (isinstance(value, str) and value.isascii()):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")  # noqa: TRY004  (it is the caller's value)
    return str.__str__(value)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, (list, tuple, set, frozenset)):
        try:
            return tuple(map(_text, value))
        except ValueError:
            pass
    elif isinstance(value, str):
        return listed(_text(value))
    raise ValueError("must be texts with commas between")


_READERS: Mapping[Any, Callable[[object], Any]] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: _text,
    tuple: _texts,
}
