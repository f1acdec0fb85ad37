"""The parameters of a tool as pydantic has them: a second opinion on values and JSON schemas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, TypeVar, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    create_model,
)

from peakline.toolbox.parameter_values import Declaration, listed
from peakline.toolbox.parameters import Parameters, type_hints

_P = TypeVar("_P", bound=Parameters)
_LIMITS = ("ge", "le", "lt", "max_length", "pattern")


def model_of(kind: type[Parameters]) -> type[BaseModel]:
    """A model of the same name, which forbids unknown names."""
    if kind not in _MODELS:
        _MODELS[kind] = _made(kind)
    return _MODELS[kind]


_MODELS: dict[type[Parameters], type[BaseModel]] = {}


def _made(kind: type[Parameters]) -> type[BaseModel]:
    hints = type_hints(kind)
    members: dict[str, Any] = {
        name: (_annotation(hints[name], declared), _field(declared))
        for name, declared in kind.declared().items()
    }
    return create_model(
        kind.__name__,
        __config__=ConfigDict(extra="forbid", frozen=True),
        __doc__=kind.__doc__,
        __module__=kind.__module__,
        **members,
    )


def validate(kind: type[_P], given: Mapping[str, object]) -> _P:
    """An instance of ``kind``; raises pydantic.ValidationError, which says what is wrong."""
    result = model_of(kind).model_validate(dict(given))
    return kind(**{name: getattr(result, name) for name in kind.declared()})


def _annotation(kinds: tuple[Any, ...], declared: Declaration) -> Any:
    """The type as pydantic has to know it."""
    annotation = reduce(or_, map(_exact, kinds))
    if declared.check is not None:
        return Annotated[annotation, AfterValidator(declared.check)]
    return annotation


def _exact(kind: Any) -> Any:
    if kind is float:
        return FiniteFloat
    if get_origin(kind) is tuple:
        return Annotated[kind, BeforeValidator(_items)]
    return kind


def _items(value: object) -> object:
    """Text from a remote caller or a command line as the items that it lists."""
    return listed(value) if isinstance(value, str) else value


def _field(declared: Declaration) -> Any:
    limits: dict[str, Any] = {
        name: limit for name in _LIMITS if (limit := getattr(declared, name)) is not None
    }
    extra: dict[str, Any] | None = {"local_only": True} if declared.local_only else None
    return Field(
        declared.default, description=declared.description, json_schema_extra=extra, **limits
    )
