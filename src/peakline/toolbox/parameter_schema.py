"""The JSON schema of declared parameters, as `/api/tools` and `/openapi.json` show it."""

from __future__ import annotations

from dataclasses import MISSING
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from peakline.toolbox.parameter_values import Declaration
from peakline.toolbox.parameters import Parameters, type_hints

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_LIMITS = {
    "ge": "minimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "max_length": "maxLength",
    "pattern": "pattern",
}
"""JSON schema's words for the fields of a `Declaration`."""


def schema_of(kind: type[Parameters]) -> dict[str, Any]:
    """The JSON schema of an object with these parameters and no others."""
    result: dict[str, Any] = {
        "title": kind.__name__,
        "description": kind.__doc__,
        "type": "object",
        "properties": properties_of(kind),
        "additionalProperties": False,
    }
    required = required_of(kind)
    return {**result, "required": required} if required else result


def properties_of(kind: type[Parameters]) -> dict[str, dict[str, Any]]:
    """The JSON schema of every parameter by its name."""
    hints = type_hints(kind)
    return {
        name: _property(name, hints[name], declared) for name, declared in kind.declared().items()
    }


def required_of(kind: type[Parameters]) -> list[str]:
    """The parameters that nobody may leave out."""
    return [name for name, each in kind.declared().items() if each.default is MISSING]


def _property(name: str, kinds: tuple[Any, ...], declared: Declaration) -> dict[str, Any]:
    (kind,) = (each for each in kinds if each is not NoneType)
    result = {
        **_type(kind),
        **{
            word: limit
            for field, word in _LIMITS.items()
            if (limit := getattr(declared, field)) is not None
        },
    }
    if NoneType in kinds:
        result = {"anyOf": [result, {"type": "null"}]}
    if declared.default is not MISSING:
        default = declared.default
        result["default"] = list(default) if isinstance(default, tuple) else default
    result |= {"description": declared.description, "title": name.replace("_", " ").title()}
    return {**result, **({"local_only": True} if declared.local_only else {}), **declared.schema}


def _type(kind: Any) -> dict[str, Any]:
    """The schema of one of the types that a parameter may have."""
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return {"enum": list(choices), "type": "string"}
    if get_origin(kind) is tuple:
        return {"items": {"type": _TYPES[get_args(kind)[0]]}, "type": "array"}
    return {"type": _TYPES[kind]}
