"""Protobuf messages written as text or JSON, turned into the binary form that readers read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline import schema
from peakline.errors import DamagedError, InputError
from peakline.formats.common.files import SourceFile
from peakline.schema.shapes import MessageShape
from peakline.tables.reader import Warnings
from peakline.wire import text_to_wire

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


OLD_NAMES: Mapping[str, Mapping[str, str]] = {
    "tensorflow.MemoryStats": {
        "host_temp_memory_size": "temp_memory_size",
        "host_persistent_memory_size": "persistent_memory_size",
        "host_persistent_tensor_alloc_ids": "persistent_tensor_alloc_ids",
    },
    # Its field host_temp_memory_size is still there, and another one.
    "tensorflow.CostGraphDef.Node": {"host_persistent_memory_size": "persistent_memory_size"},
}
"""Names that fields had before TensorFlow 1.5, by message: ``{old: new}``. The numbers are the
same, so that only text and JSON show it."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

_LONG_LINE = 1 << 20
"""How far the beginning of a line is looked for."""


def translate(file: SourceFile, encoding: str, full_name: str, warnings: Warnings) -> SourceFile:
    """The message ``full_name``, written as ``text`` or ``json``, in its binary form.

    Fields that the schema does not have and values that were blacked out are left out, and counted
    in ``warnings``.

    Text is https://protobuf.dev/reference/protobuf/textformat-spec/, JSON is
    https://protobuf.dev/programming-guides/json/ with names in either spelling. Fields' old names
    (`OLD_NAMES`) are known in both. Raises DamagedError where the grammar is broken, with the
    line, and InputError where a value does not fit its field.
    """
    if encoding == "text":
        return _from_text(file, schema.shape(full_name), warnings)
    return _from_json(file, schema.descriptor(full_name), warnings)


def _warn_of_unknown(warnings: Warnings, count: int, first: str) -> None:
    detail = f"fields that the schema does not have; the first is {first}"
    warnings.add("unknown_fields", detail, count)


def _from_text(file: SourceFile, shape: MessageShape, warnings: Warnings) -> SourceFile:
    text = file.buffer
    result = text_to_wire(text, shape, OLD_NAMES)
    if result.error:
        before = text[: result.error_at]
        line = int(np.count_nonzero(before == ord("\n"))) + 1
        tail = before[-_LONG_LINE:].tobytes()
        column = len(tail) - tail.rfind(b"\n")
        raise DamagedError(
            f"{file.path}: line {line}, column {column}: {result.error} "
            f"({shape.name} in text format)",
            result.error_at,
        )
    _warn_of_unknown(warnings, result.unknown, result.first_unknown)
    warnings.add("redacted", "values that the writer blacked out", result.redacted)
    return file.translated(result.data)


def _from_json(file: SourceFile, descriptor: Descriptor, warnings: Warnings) -> SourceFile:
    from google.protobuf import json_format

    where = f"{descriptor.name} in JSON"
    try:
        content = json.loads(file.buffer.tobytes())
        _check_characters(file, content)
    except json.JSONDecodeError as error:
        raise DamagedError(
            f"{file.path}: line {error.lineno}, column {error.colno}: {error.msg} ({where})",
            error.pos,
        ) from None
    except UnicodeDecodeError as error:
        raise DamagedError(f"{file.path}: not UTF-8 ({where})", error.start) from None
    except UnicodeEncodeError:
        raise DamagedError(f"{file.path}: an escape is half a character ({where})") from None
    except ValueError:
        # What else the interpreter refuses: it converts no more than 4300 digits.
        raise DamagedError(f"{file.path}: a number has too many digits ({where})") from None
    except RecursionError:
        raise DamagedError(f"{file.path}: nested too deeply ({where})") from None
    unknown: list[str] = []
    message = schema.message(descriptor.full_name)()
    try:
        json_format.ParseDict(
            _with_new_names(content, descriptor, unknown),
            message,
            ignore_unknown_fields=True,
            descriptor_pool=schema.POOL,
        )
        data = message.SerializeToString(deterministic=True)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{file.path}: {reason} ({where})") from None
    except RecursionError:
        raise DamagedError(f"{file.path}: nested too deeply ({where})") from None
    _warn_of_unknown(warnings, len(unknown), unknown[0] if unknown else "")
    return file.translated(data)


def _check_characters(file: SourceFile, content: Any) -> None:
    """Raise UnicodeEncodeError for text with half of a surrogate pair, which JSON can spell."""
    if _SURROGATE.search(file.buffer.data):
        json.dumps(content, ensure_ascii=False).encode()


def _with_new_names(value: Any, descriptor: Descriptor, unknown: list[str]) -> Any:
    """A JSON object with the fields' present names; names that nobody knows go to ``unknown``."""
    if not isinstance(value, dict) or descriptor.full_name.startswith("google.protobuf."):
        return value
    names = {field.name: field for field in descriptor.fields}
    names |= {field.json_name: field for field in descriptor.fields}
    for old, new in OLD_NAMES.get(descriptor.full_name, {}).items():
        names[old] = names[camel(old)] = names[new]
    renamed = {}
    for key, child in value.items():
        field = names.get(key)
        if field is None:
            unknown.append(key)
            continue
        below = field.message_type
        if below is None:
            new_child = child
        elif below.GetOptions().map_entry:
            entry = below.fields_by_name["value"].message_type
            new_child = child
            if entry is not None and isinstance(child, dict):
                new_child = {k: _with_new_names(v, entry, unknown) for k, v in child.items()}
        elif isinstance(child, list):
            new_child = [_with_new_names(item, below, unknown) for item in child]
        else:
            new_child = _with_new_names(child, below, unknown)
        renamed[field.name] = new_child
    return renamed


def camel(name: str) -> str:
    """A field's name as JSON spells it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
