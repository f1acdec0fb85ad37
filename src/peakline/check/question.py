"""What a profile is held to: limits of the command line, and of a file where that names none.

The file is the ``[tool.peakline.check]`` of a pyproject.toml, or one of their own.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peakline.check.units import (
    PS,
    Amount,
    Unit,
    part_amount,
    share_amount,
    share_or_time,
    size_amount,
    time_amount,
)
from peakline.check.verdict import Limits
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
        if file.is_file() and (result := _read(file, keys, needed=False)) is not None:
            return result
    return None


def read_settings(file: Path, keys: Collection[str]) -> Settings:
    """Those of ``file``: of its table ``[tool.peakline.check]``, or of all of it where it has none.

    ``keys`` are those that there are. Raises UsageError for another key or a value that is none,
    NotFoundError and InputError where the file cannot be read.
    """
    result = _read(file, keys, needed=True)
    if result is None:
        raise UsageError(f"{file}: has no table {_TABLE}")
    return result


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
    result: object = document
    for name in ("tool", "peakline", "check"):
        result = result.get(name) if isinstance(result, dict) else None
    return result if isinstance(result, dict) else None


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
    result: dict[str, int] = {}
    inside = not table
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            inside = bool(table) and re.sub(r"\s", "", line.partition("#")[0]) == table
        match = re.match(r"\s*[\"']?([\w-]+)[\"']?\s*=", line) if inside else None
        if match is not None and (key := match[1].replace("_", "-")) in values:
            result.setdefault(key, number)
    return result


_LIMITS: Mapping[str, tuple[str, Callable[[str], Amount], str]] = {
    "max-peak": ("peak", size_amount, "max_peak_bytes"),
    "max-growth-per-step": ("growth per step", size_amount, "max_growth_per_step_bytes"),
    "max-fragmentation": ("fragmentation", part_amount, "max_fragmentation"),
    "max-program-peak": ("program peak", size_amount, "max_program_peak_bytes"),
    "max-limit": ("limit", size_amount, "max_limit_bytes"),
    "max-step-time": ("step time", time_amount, "max_step_ps"),
    "max-p95-step-time": ("p95 step time", time_amount, "max_p95_step_ps"),
    "max-input-wait": ("input wait", part_amount, "max_input_wait"),
    "max-compile": ("compile", share_or_time, "max_compile"),
    "max-idle": ("idle", part_amount, "max_idle"),
}
KEYS = (*_LIMITS, "baseline", "tolerance", "allocator")
"""What a file may set, as the command line calls it."""


@dataclass(frozen=True)
class Question:
    """``origins`` are where each key was set: a file, None for the command line. ``settings`` are
    those of the file, None without one.
    """

    limits: Limits
    baselines: tuple[str, ...]
    allocator: str | None
    origins: Mapping[str, Path | None] = field(default_factory=dict)
    settings: Settings | None = None

    @property
    def origin_text(self) -> str:
        """Where the limits came from, in a line; empty where all are of the command line."""
        if self.settings is None:
            return ""
        file = [key for key, origin in self.origins.items() if origin is not None]
        own = [key for key, origin in self.origins.items() if origin is None]
        if not file:
            return ""
        table = f" {self.settings.table}" if self.settings.table else ""
        text = f"limits from {_near(self.settings.file)}{table}: {', '.join(file)}"
        return text + (f"; from the command line: {', '.join(own)}" if own else "")

    def line_of(self, check: str) -> tuple[str, int] | None:
        """File and line of the limit on ``check`` (the name of one); None where no file set it."""
        name = check.removesuffix(" against the baseline")
        keys = [key for key, (limited, _, _) in _LIMITS.items() if limited == name]
        if name != check:
            keys = ["baseline"]
        for key in keys:
            file = self.origins.get(key)
            if file is not None and self.settings is not None:
                return _near(file), self.settings.lines.get(key, 1)
        return None


def question_of(given: Mapping[str, Any], settings: Settings | None) -> Question:
    """``given`` are the values of `KEYS` that the command line has: amounts, texts, a tuple of
    baselines; None or empty where it has none, and the file's count.

    Raises UsageError for a value of the file that cannot be one, and where there is no limit.
    """
    result: dict[str, Any] = {}
    origins: dict[str, Path | None] = {}
    for key in KEYS:
        value = given.get(key)
        if value not in {None, ()}:
            result[key], origins[key] = value, None
        elif settings is not None and key in settings.values:
            result[key], origins[key] = _of_file(key, settings), settings.file
    if not any(key in _LIMITS or key == "baseline" for key in result):
        options = [f"--{key}" for key in (*_LIMITS, "baseline")]
        where = "" if settings is None else f", neither by {_near(settings.file)}"
        raise UsageError(
            f"no limit is given{where}; see {', '.join(options[:-1])} and {options[-1]}"
        )
    if "tolerance" in result and "baseline" not in result:
        if origins["tolerance"] is None:
            raise UsageError("--tolerance needs a --baseline")
        del result["tolerance"], origins["tolerance"]
    tolerance = result["tolerance"].value if "tolerance" in result else None
    limits = limits_of({key: result[key] for key in _LIMITS if key in result}, tolerance)
    baselines = result.get("baseline", ())
    return Question(limits, tuple(baselines), result.get("allocator"), origins, settings)


def limits_of(amounts: Mapping[str, Amount], tolerance: float | None = None) -> Limits:
    """The limits of amounts by key."""
    values: dict[str, Any] = {}
    units: dict[str, Unit] = {}
    for key, amount in amounts.items():
        name, _, place = _LIMITS[key]
        if key == "max-compile" and amount.unit.measure == PS:
            place = "max_compile_ps"
        values[place], units[name] = amount.value, amount.unit
    return Limits(tolerance=tolerance, units=units, **values)


def limits_of_texts(texts: Mapping[str, str]) -> Limits:
    """The limits of texts by key. Raises UsageError for a text that cannot be one."""
    amounts = {}
    for key, text in texts.items():
        try:
            amounts[key] = _LIMITS[key][1](text)
        except UsageError as error:
            raise UsageError(f"{key}: {error}") from None
    return limits_of(amounts)


def texts_of(limits: Limits) -> dict[str, str]:
    """The texts of limits by key, as `limits_of_texts` takes them."""
    result = {}
    for key, (name, _, place) in _LIMITS.items():
        value = getattr(limits, place)
        if value is None and key == "max-compile":
            value = limits.max_compile_ps
        if value is not None:
            result[key] = limits.units[name].written(value)
    return result


def _of_file(key: str, settings: Settings) -> Any:
    value = settings.values[key]
    if key == "baseline":
        # A path in a file is one from that file on, wherever the verb runs.
        paths = [value] if isinstance(value, str) else value
        return tuple(_near(settings.file.parent / path) for path in paths)
    text = value if isinstance(value, str) else value[0]
    if key == "allocator":
        return text
    parse = share_amount if key == "tolerance" else _LIMITS[key][1]
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{settings.where(key)}: {error}") from None


def _near(path: Path) -> str:
    """A path as seen from the working directory, where it lies below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_absolute() and path.is_relative_to(here) else path)
