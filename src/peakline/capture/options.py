"""`ProfileOptions` from words: every field by its name, and what only one device type knows."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from peakline import schema
from peakline.errors import UsageError

_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
_ADVANCED = "advanced_configuration"
_CLOSE = 0.85


def default_options() -> schema.ProfileOptions:
    """The options that the capture clients of TensorFlow and JAX send."""
    return schema.ProfileOptions(
        version=1,
        host_tracer_level=2,
        device_tracer_level=1,
        enable_hlo_proto=True,
        include_dataset_ops=True,
    )


def profile_options(pairs: Mapping[str, str]) -> schema.ProfileOptions:
    """`default_options` changed by ``pairs``.

    A key is a field of ProfileOptions (an enum's value by name or number), a field of one of its
    messages with a dot (``trace_options.host_traceme_filter_mask``), or any other name: that goes
    into ``advanced_configuration``, where ``true`` and ``false`` are bool, whole numbers int64,
    the rest text (``"12"`` in quotes is text too). A name that looks like a misspelt field is
    refused; written ``advanced_configuration.NAME`` it passes. Raises UsageError for a value that
    does not fit.
    """
    options = default_options()
    for key, text in pairs.items():
        _set(options, key, text)
    return options


def _set(options: schema.ProfileOptions, key: str, text: str) -> None:
    first, _, rest = key.partition(".")
    fields = options.DESCRIPTOR.fields_by_name
    if first == _ADVANCED:
        if not rest:
            raise UsageError(f"{_ADVANCED}: name the entry, {_ADVANCED}.NAME=VALUE")
        _set_advanced(options, rest, text)
    elif first not in fields:
        close = get_close_matches(key, fields, 1, _CLOSE)
        if close:
            raise UsageError(
                f"no option {key!r}; {close[0]!r} is meant, or {_ADVANCED}.{key} for a device's own"
            )
        _set_advanced(options, key, text)
    elif (message := fields[first].message_type) is not None:
        if rest not in message.fields_by_name:
            known = ", ".join(f"{first}.{name}" for name in message.fields_by_name)
            raise UsageError(f"no option {key!r}; there is: {known}")
        _assign(getattr(options, first), message.fields_by_name[rest], key, text)
    elif rest:
        raise UsageError(f"option {first!r} has no parts; write {first}=VALUE")
    else:
        _assign(options, fields[first], key, text)


def _assign(message: Any, field: Any, key: str, text: str) -> None:
    try:
        setattr(message, field.name, _value(field, text))
    except (ValueError, TypeError):
        raise UsageError(f"option {key}={text!r}: {_wanted(field)} is wanted") from None


def _value(field: Any, text: str) -> bool | int | str:
    """``text`` as a value of ``field``; ValueError when it is none."""
    if field.type == field.TYPE_BOOL:
        word = text.lower()
        if word not in _TRUE | _FALSE:
            raise ValueError(text)
        return word in _TRUE
    if field.enum_type is not None:
        named = field.enum_type.values_by_name.get(text.upper())
        number = int(text) if named is None else named.number
        if number not in field.enum_type.values_by_number:
            raise ValueError(text)
        return number
    if field.type == field.TYPE_STRING:
        return text
    return int(text, 0)


def _wanted(field: Any) -> str:
    if field.type == field.TYPE_BOOL:
        return "true or false"
    if field.enum_type is not None:
        return "one of " + ", ".join(field.enum_type.values_by_name)
    if field.type == field.TYPE_STRING:
        return "text in valid Unicode"
    return f"a whole number from 0 to {2**64 - 1 if field.type == field.TYPE_UINT64 else 2**32 - 1}"


def _set_advanced(options: schema.ProfileOptions, key: str, text: str) -> None:
    try:
        entry = options.advanced_configuration[key]
        if text in {"true", "false"}:
            entry.bool_value = text == "true"
        elif text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal():
            entry.int64_value = int(text)
        elif len(text) > 1 and text[0] == text[-1] == '"':
            entry.string_value = text[1:-1]
        else:
            entry.string_value = text
    except (ValueError, TypeError):
        raise UsageError(
            f"option {key}={text!r}: a number of 64 bits or text in Unicode is wanted"
        ) from None
