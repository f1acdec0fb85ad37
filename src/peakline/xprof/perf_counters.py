"""The ``perf_counters`` tool: the hardware counters of devices, as they were read.

The table of XProf's tool of the same name (``xprof/convert/xplane_to_perf_counters.cc`` of
openxla/xprof): a row per event with the stat ``counter_value``.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from peakline import timing
from peakline.text import whole_number
from peakline.toolbox.parameters import XprofParameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import Column, DataTable, Value, tables_csv, tables_json

if TYPE_CHECKING:
    from peakline.tables import Columns, Profile

    _Rows = list[list[Value]]

_VALUE = "counter_value"
_DESCRIPTION, _SETS = "performance_counter_description", "performance_counter_sets"
_DEVICES = ("/device:TPU:", "/device:GPU:")
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def _hex(value: float) -> str:
    return hex(value) if isinstance(value, int) else f"{value:g}"


_COLUMNS = (
    Column("Host", "string", "Host"),
    Column("Chip", "number", "Chip"),
    Column("Kernel", "string", "Kernel"),
    Column("Sample", "number", "Sample"),
    Column("Counter", "string", "Counter"),
    Column("Value", "number", "Value (Hex)", shown=_hex),
    Column("Description", "string", "Description"),
    Column("Set", "string", "Set"),
)


class PerfCountersParameters(XprofParameters):
    """The parameters; text is accepted for every value."""


def _partial(profile: Profile, parameters: PerfCountersParameters) -> _Rows:
    """The rows of one host, without its name, in the order of the file."""
    if profile.event_rules.planes is None or not profile.has_rows("events"):
        return []
    return list(_rows(profile, compatible=bool(parameters.compatible)))


def _rows(profile: Profile, *, compatible: bool) -> Iterator[list[Value]]:
    stats = profile.typed_stats(frozenset((_VALUE, _DESCRIPTION, _SETS)))
    chips = _chips(profile, compatible=compatible)
    lines = profile.columns("lines")
    planes, numbers = lines.array("plane_id").tolist(), lines.array("native_id").tolist()
    names = lines.names("name")
    events = profile.columns("events", frozenset(("line_id", "name")))
    line_of, counters = events.array("line_id"), events.names("name")
    for event, result in _by_event(stats, compatible=compatible):
        line = int(line_of[event])
        if _VALUE not in result or planes[line] not in chips:
            continue
        said = (result.get(_DESCRIPTION), result.get(_SETS))
        texts = [value if isinstance(value, str) else "" for value in said]
        yield [
            chips[planes[line]], names[line] or "", numbers[line],
            (counters[event] or "").translate(_LOWER), result[_VALUE], *texts,
        ]  # fmt: skip


def _by_event(stats: Columns, *, compatible: bool) -> Iterator[tuple[int, dict[str, Value]]]:
    """The stats of each event, the first of each name: a counter's value is a number below 2^64.

    XProf takes any other for 0.
    """
    integers, is_integer = stats.array("integer"), stats.is_valid("integer")
    reals, is_real = stats.array("real"), stats.is_valid("real")
    names, texts = stats.names("name"), stats.names("text")
    last, result = -1, dict[str, Value]()
    for row, event in enumerate(stats.array("event_id").tolist()):
        if event != last:
            if result:
                yield last, result
            last, result = event, {}
        name = names[row] or ""
        value: Value = texts[row]
        if name == _VALUE:
            value = 0
            if is_integer[row]:
                value = int(integers[row]) % 2**64
            elif is_real[row] and not compatible:
                value = float(reals[row])
        result.setdefault(name, value)
    if result:
        yield last, result


def _chips(profile: Profile, *, compatible: bool) -> dict[int, int]:
    """The number of the chip of each device's plane: what it says, else that in its name; XProf
    leaves out what says none.
    """
    result = {}
    for plane, name in enumerate(profile.columns("planes").names("name").to_list()):
        prefix = next((each for each in _DEVICES if (name or "").startswith(each)), None)
        if name is None or prefix is None:
            continue
        said = timing.plane_stats_of(profile, plane)
        stated = [said.get(stat, "") for stat in ("global_chip_id", "device_id")]
        numbers = [number for text in stated if (number := _number(text)) is not None]
        if not (numbers or compatible):
            ordinal = name.removeprefix(prefix).split(" ")[0]
            number = _number(ordinal)
            numbers = [] if number is None else [number]
        if numbers:
            result[plane] = min(numbers[0], 2**63 - 1)
    return result


def _number(text: str) -> int | None:
    number = whole_number(text, 20)
    return number if number is not None and number >= 0 else None


def _combine(
    parts: Sequence[tuple[str, _Rows]], _parameters: PerfCountersParameters, output_format: str
) -> bytes:
    table = DataTable(_COLUMNS, [[host, *row] for host, rows in parts for row in rows])
    return tables_csv(table) if output_format == "csv" else tables_json(table)


def _has_counters(profile: Profile) -> bool:
    """Whether a device may have counters: only the names of its planes are looked at first."""
    if profile.event_rules.planes is None:
        return False
    names = profile.columns("planes").names("name").to_list()
    return any((name or "").startswith(_DEVICES) for name in names) and bool(
        profile.typed_stats(frozenset((_VALUE,))).rows
    )


TOOL = Tool(
    name="perf_counters",
    doc="The hardware counters of devices, as they were read.",
    parameters=PerfCountersParameters,
    formats=("json", "csv"),
    shows=(("events",),),
    looks=_has_counters,
    marks=(_VALUE,),
    partial=_partial,
    combine=_combine,
)
