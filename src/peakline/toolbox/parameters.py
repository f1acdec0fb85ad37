"""How a tool or a route of HTTP declares its parameters.

What a value means is decided by `parameter_values`, the JSON schema is written by
`parameter_schema`, both of the same declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
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
    overload,
)

from peakline.errors import PeaklineError, UsageError
from peakline.suggest import near, there_is
from peakline.toolbox.parameter_values import Declaration, value_of

_T = TypeVar("_T")
_CHOICES = 100
"""So many names of ours are listed, which is all."""


@overload
def parameter(default: _T, **declared: Any) -> _T: ...
@overload
def parameter(**declared: Any) -> Any: ...
def parameter(default: Any = MISSING, **declared: Any) -> Any:
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
    def read(cls, given: Mapping[str, object], where: str = "") -> Self:
        """An instance of these values, which may be texts; ``where`` begins the line of an error.

        Raises UsageError, which names the parameter, for a value that is none, for an unknown name
        and for one that is missing.
        """
        declared, hints = cls.declared(), type_hints(cls)
        result = {}
        for name, value in given.items():
            if name not in declared:
                shown, known = f"{name!r:.100}", there_is(name, declared, most=_CHOICES)
                raise UsageError(f"{where}no parameter {shown}{known}").quoting(shown)
            result[name] = _read(hints[name], declared[name], value, f"{where}parameter {name}")
        for name, declaration in declared.items():
            if declaration.default is MISSING and name not in result:
                raise UsageError(f"{where}parameter {name} is missing")
        return cls(**result)

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


def _read(kinds: tuple[Any, ...], declared: Declaration, value: object, subject: str) -> Any:
    """The value; raises UsageError, which begins with ``subject``, where it is none."""
    try:
        result = value_of(kinds, declared, value)
    except ValueError as error:
        shown = f"{value!r:.80}"
        choices = [one for kind in kinds for one in get_args(kind) if one and isinstance(one, str)]
        close = near(str(value), choices)
        meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise UsageError(f"{subject} {error}, not {shown}{meant}").quoting(shown) from None
    try:
        return result if declared.check is None else declared.check(result)
    except ValueError as error:
        quoted = map(repr, result if isinstance(result, tuple) else (result,))
        raise UsageError(f"{subject}: {error}").quoting(*quoted) from None
