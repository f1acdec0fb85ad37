"""Limits that a file sets: ``[tool.peakline.check]`` of a pyproject.toml, or a file of their own.

The keys are those of the command line, without the dashes in front. A misspelt key is an error: a
limit that nobody holds is worse than none.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from peakline.errors import InputError, NotFoundError, UsageError

_TABLE = "[tool.peakline.check]"
_NAME = "pyproject.toml"


@dataclass(frozen=True)
class Settings:
    """The values of a ``file`` by key (``max-peak``), as text or a list of texts, and the line of
    each, from 1. ``table`` is the table that they stand in, empty for a file of their own.
    """

    file: Path
    table: str
    values: Mapping[str, str | list[str]]
    lines: Mapping[str, int]

    def where(self, key: str) -> str:
        """``pyproject.toml: max-peak``, for an error."""
        return f"{self.file}: {key}"


def find_settings(folder: Path, keys: Collection[str]) -> Settings | None:
    """Those of the next pyproject.toml from ``folder`` upward that has the table; None without one.

    Raises as `read_settings`.
    """
    for place in (folder, *folder.parents):
        file = place / _NAME
        if file.is_file() and (found := _read(file, keys, needed=False)) is not None:
            return found
    return None


def read_settings(file: Path, keys: Collection[str]) -> Settings:
    """Those of ``file``: of its table ``[tool.peakline.check]``, or of all of it where it has none.

    ``keys`` are those that there are. Raises UsageError for another key or a value that is none,
    NotFoundError and InputError where the file cannot be read.
    """
    found = _read(file, keys, needed=True)
    if found is None:
        raise UsageError(f"{file}: has no table {_TABLE}")
    return found


def _read(file: Path, keys: Collection[str], *, needed: bool) -> Settings | None:
    try:
        text = file.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError:
        raise NotFoundError(f"{file}: no such file") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: is no TOML: {error}") from None
    table, where = _table(document), _TABLE
    if table is None:
        if not needed or file.name == _NAME:
            return None
        table, where = document, ""
    values: dict[str, str | list[str]] = {}
    for name, value in table.items():
        key = name.replace("_", "-")
        if key not in keys:
            close = difflib.get_close_matches(key, keys, 1)
            hint = f"did you mean {close[0]}?" if close else f"there is: {', '.join(keys)}"
            raise UsageError(f"{file}: {where or 'the file'} has no key {name!r}; {hint}")
        values[key] = _value(file, name, value, several=key == "baseline")
    return Settings(file, where, values, _lines(text, where, values))


def _table(document: Mapping[str, object]) -> Mapping[str, object] | None:
    found: object = document
    for name in ("tool", "peakline", "check"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _value(file: Path, name: str, value: object, *, several: bool) -> str | list[str]:
    if isinstance(value, list) and several and all(isinstance(one, str) for one in value):
        return [str(one) for one in value]
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value}"
    raise UsageError(f"{file}: {name} is a text or a number, not {value!r:.40}")


def _lines(text: str, table: str, values: Collection[str]) -> dict[str, int]:
    """The line on which each key stands, where it is written as most people do."""
    found: dict[str, int] = {}
    inside = not table
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            inside = bool(table) and re.sub(r"\s", "", line.partition("#")[0]) == table
        match = re.match(r"\s*[\"']?([\w-]+)[\"']?\s*=", line) if inside else None
        if match is not None and (key := match[1].replace("_", "-")) in values:
            found.setdefault(key, number)
    return found
