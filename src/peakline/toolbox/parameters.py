"""How a tool declares its parameters, and the values that are understood without a library.

pydantic decides what a value means and what is wrong with it (`parameter_models` makes its model
of a declaration), but its import costs more than many an answer. A value that can be read in one
way only is therefore read here: none at all, one of the right type, or the text that Python would
write for one. Whatever is accepted here, pydantic accepts as the same value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    Self,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from peakline.errors import PeaklineError, UsageError
from peakline.suggest import there_is

_T = TypeVar("_T")
_TRUTH = {"True": True, "true": True, "1": True, "False": False, "false": False, "0": False}
_LONGEST_INT = 19
"""Characters of an int64; of longer text Python may refuse to make a number."""
_CHOICES = 100
"""So many names of ours are listed, which is all."""
_LARGEST_WHOLE = 1 << 53
"""Up to here a float holds every integer."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What is known of one parameter beside its name and its type.

    A number is in ``ge <= number <= le`` and ``< lt``; a text has at most ``max_length``
    characters and matches ``pattern`` as a whole. ``check`` returns the value, or raises a
    ValueError that says what is wrong with it. ``local_only``: not for remote callers.
    """

    default: Any
    description: str
    ge: int | None = None
    le: int | None = None
    lt: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    check: Callable[[Any], Any] | None = None
    local_only: bool = False


def parameter(default: _T, **declared: Any) -> _T:
    """The right side of a parameter in a class of `Parameters`: `Declaration`'s fields."""
    declaration = Declaration(default=default, **declared)
    return field(default=default, metadata={"declaration": declaration})


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Parameters:
    """The parameters of a tool; a class made of this one is a frozen dataclass.

    A parameter is ``bool``, ``int``, ``float`` (a finite one), ``str``, a ``Literal`` of texts,
    ``tuple[str, ...]`` (items separated by commas), or one of these or None. Text is accepted for
    every value, because remote callers send text.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def declared(cls) -> Mapping[str, Declaration]:
        """Every parameter by its name, in order."""
        return {each.name: each.metadata["declaration"] for each in fields(cast("Any", cls))}

    @classmethod
    def plain(cls, given: Mapping[str, object]) -> Self | None:
        """An instance of these values; None where only pydantic can say what they mean."""
        if not given:
            return cls()
        declared, hints = cls.declared(), type_hints(cls)
        try:
            return cls(
                **{name: _read(hints[name], declared[name], value) for name, value in given.items()}
            )
        except (KeyError, ValueError):
            return None

    def but(self, *names: str) -> dict[str, Any]:
        """The values by name, without those of ``names``."""
        return {name: value for name, value in vars(self).items() if name not in names}


class XprofParameters(Parameters):
    """Those of tools with numbers of one host or of several, or XProf's of these."""

    host: str | None = parameter(None, description="the host, where a session has several")
    compatible: Literal["", "xprof"] = parameter(
        "", description="xprof: the numbers of XProf 2.24.2, also where they are wrong"
    )


def type_hints(kind: type[Parameters]) -> Mapping[str, tuple[Any, ...]]:
    """The alternatives of every parameter's type, by its name."""
    if kind not in _HINTS:
        _HINTS[kind] = {
            name: get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
            for name, hint in get_type_hints(kind).items()
        }
    return _HINTS[kind]


_HINTS: dict[type[Parameters], Mapping[str, tuple[Any, ...]]] = {}


def check_choice(
    value: str, choices: Iterable[str], complaint: str, error: type[PeaklineError] = UsageError
) -> None:
    """Raise ``error``, which quotes the value and names the choices, where it is none of them."""
    if value not in choices:
        shown = f"{value!r:.80}"
        raise error(f"{complaint} {shown}{there_is(value, choices, most=_CHOICES)}").quoting(shown)


def listed(text: str) -> tuple[str, ...]:
    """The items of a text that separates them by commas."""
    return tuple(filter(None, text.split(",")))


def _read(kinds: tuple[Any, ...], declared: Declaration, value: object) -> Any:
    """The value; raises KeyError or ValueError where it is not plainly a right one."""
    if value is None:
        if NoneType not in kinds:
            raise ValueError
        return None
    kind = next(each for each in kinds if each is not NoneType)
    if get_origin(kind) is Literal:
        return _choice(value, get_args(kind))
    found = _READERS[get_origin(kind) or kind](value)
    _check_limits(found, declared)
    return found if declared.check is None else declared.check(found)


def _check_limits(value: Any, declared: Declaration) -> None:
    is_inside = (
        (declared.ge is None or value >= declared.ge)
        and (declared.le is None or value <= declared.le)
        and (declared.lt is None or value < declared.lt)
        and (declared.max_length is None or len(value) <= declared.max_length)
        and (declared.pattern is None or re.fullmatch(declared.pattern, value))
    )
    if not is_inside:
        raise ValueError


def _choice(value: object, choices: tuple[str, ...]) -> str:
    if type(value) is str and value in choices:
        return value
    raise ValueError


def _bool(value: object) -> bool:
    if type(value) is bool:
        return value
    return _TRUTH[_text(value)]


def _int(value: object) -> int:
    if type(value) is int:
        return value
    text = _text(value)
    if len(text) > _LONGEST_INT or str(int(text)) != text:
        raise ValueError
    return int(text)


def _float(value: object) -> float:
    if type(value) is float:
        number = value
    elif type(value) is str and repr(float(value)) == value:
        number = float(value)
    else:
        whole = _int(value)
        if abs(whole) > _LARGEST_WHOLE:
            raise ValueError
        number = float(whole)
    if not math.isfinite(number):
        raise ValueError
    return number


def _text(value: object) -> str:
    """A text, also in UTF-8: a lone surrogate is a UnicodeEncodeError, which is a ValueError."""
    if type(value) is not str:
        raise ValueError
    value.encode()
    return value


def _texts(value: object) -> tuple[str, ...]:
    if type(value) is tuple or type(value) is list:
        return tuple(map(_text, value))
    return listed(_text(value))


_READERS: Mapping[Any, Callable[[object], Any]] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: _text,
    tuple: _texts,
}
