"""DataTables of two answers, side by side."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import peakline
from peakline.tools import find_tool, run_tool
from tests.conformance.oracle import XProf


def theirs(xprof: XProf, tool: str, *paths: Path) -> Any:
    """XProf's answer about the hosts of a session, as JSON values."""
    return json.loads(xprof.ask(tool, *paths))


def different(xprof: XProf, tool: str, paths: Sequence[Path]) -> dict[str, str]:
    """Where our compatible answer is not XProf's: what differs, by the file's name."""
    assert paths
    result = {
        path.name: difference(ours(path, tool, compatible="xprof"), theirs(xprof, tool, path))
        for path in paths
    }
    return {name: text for name, text in result.items() if text}


def written(folder: Path, spaces: dict[str, Any]) -> list[Path]:
    """XSpaces as files, by name."""
    paths = []
    for name, space in spaces.items():
        paths.append(folder / f"{name}.xplane.pb")
        paths[-1].write_bytes(space.SerializeToString())
    return paths


def ours(path: Path, tool: str, **parameters: str) -> Any:
    """Our answer as JSON values."""
    with peakline.open(str(path)) as profile:
        return json.loads(run_tool(profile, tool, parameters).content)


def ours_together(paths: Sequence[Path], tool: str, **parameters: str) -> Any:
    """Our answer about the hosts of a session, as JSON values."""
    result = find_tool(tool)
    request = result.validated(parameters)
    result = result.answering(request)
    parts = []
    for path in paths:
        with peakline.open(str(path)) as profile:
            parts.append((profile.host, result.contribution(profile, request)))
    return json.loads(result.combine(parts, request, "json"))


def rows(table: Any) -> list[list[Any]]:
    """The values of a DataTable."""
    return [[cell.get("v") for cell in row["c"]] for row in table["rows"]]


def difference(own: Any, other: Any) -> str | None:
    """The first thing in which two answers differ; numbers within 1e-9."""
    own, other = (value if isinstance(value, list) else [value] for value in (own, other))
    if len(own) != len(other):
        return f"{len(own)} tables, not {len(other)}"
    for number, (one, two) in enumerate(zip(own, other, strict=True)):
        if one["cols"] != two["cols"] or one.get("p") != two.get("p"):
            return f"table {number}: {one['cols']} {one.get('p')}, not {two['cols']} {two.get('p')}"
        for place, (a, b) in enumerate(zip(rows(one), rows(two), strict=False)):
            if not all(map(_same, a, b)):
                return f"table {number}, row {place}: {a}, not {b}"
        if len(one["rows"]) != len(two["rows"]):
            return f"table {number}: {len(one['rows'])} rows, not {len(two['rows'])}"
    return None


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-15)
    return type(one) is type(two) and one == two
