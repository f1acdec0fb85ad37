"""Every expression takes time in proportion to the text, whatever the text is made of.

Names, lines and values of a file are as long as a caller wants them, and an expression that tries
n squared ways over one of a megabyte takes hours: no deadline is checked meanwhile.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from time import process_time
from typing import Any, NamedTuple

import pytest
from tests.amplification.pumping import pumped

import peakline

_ROOT = Path(peakline.__file__).parent
_SIZE = 8000
_MOST_SECONDS = 0.1
"""What is linear takes a thousandth of it, what is quadratic several times as much."""
_WAYS: dict[str, Callable[[re.Pattern[Any], Any], object]] = {
    "match": re.Pattern.match,
    "fullmatch": re.Pattern.fullmatch,
    "search": re.Pattern.search,
    "finditer": lambda pattern, text: list(pattern.finditer(text)),
}
_LIKE = {"sub": "finditer", "subn": "finditer", "split": "finditer", "findall": "finditer"}
_OWN_FILES = "tables/sql_views.py"
"""It reads the files of views, which are ours."""


class _Expression(NamedTuple):
    pattern: re.Pattern[Any]
    place: str
    ways: frozenset[str]


@pytest.fixture(scope="module")
def expressions() -> list[_Expression]:
    """Those of all modules, in a process of their own: here most are imported already."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.amplification.test_expressions"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [_parsed(line) for line in result.splitlines()]


@pytest.mark.parametrize(
    "few",
    [pytest.param(True, marks=pytest.mark.nightly), pytest.param(False, marks=pytest.mark.soak)],
)
def test_expressions_are_linear(expressions, few):
    assert len(expressions) > 250
    slow = [
        f"{one.place}: {way} of {text[:40]!r}...{text[-4:]!r}"
        for one in expressions
        for way, text in _slow(one, few)
    ]
    assert not slow, "\n".join(slow)


def _slow(one: _Expression, few: bool) -> Iterator[tuple[str, str]]:
    for way in sorted(one.ways):
        for text in pumped(one.pattern, _SIZE, few=few):
            given = text.encode("latin-1", "replace") if _is_bytes(one.pattern) else text
            if all(_seconds(way, one.pattern, given) > _MOST_SECONDS for _ in range(3)):
                yield way, text
                break


def _seconds(way: str, pattern: re.Pattern[Any], text: Any) -> float:
    start = process_time()
    _WAYS[way](pattern, text)
    return process_time() - start


def _is_bytes(pattern: re.Pattern[Any]) -> bool:
    return isinstance(pattern.pattern, bytes)


def _parsed(line: str) -> _Expression:
    place, flags, ways, is_bytes, text = json.loads(line)
    pattern = text.encode("latin-1") if is_bytes else text
    return _Expression(re.compile(pattern, flags), place, frozenset(ways))


def _write_all() -> None:
    """A line of JSON for each: where it is, its flags, how it is used, itself."""
    made: list[tuple[re.Pattern[Any], str, int]] = []
    compile_one = re.compile

    def noting(pattern: Any, flags: Any = 0) -> re.Pattern[Any]:
        caller = sys._getframe(1)
        compiled = compile_one(pattern, flags)
        if str(_ROOT) in caller.f_code.co_filename:
            made.append((compiled, caller.f_code.co_filename, caller.f_lineno))
        return compiled

    re.compile = noting  # type: ignore[assignment]
    for module in walk_packages([str(_ROOT)], "peakline."):
        if not module.name.startswith(("peakline.__main__", "peakline.engine.dask")):
            import_module(module.name)
    sources = {path: path.read_text() for path in _ROOT.rglob("*.py")}
    for pattern, file, line in made:
        place = f"{Path(file).relative_to(_ROOT)}:{line}"
        if _OWN_FILES in place:
            continue
        raw, is_bytes = pattern.pattern, _is_bytes(pattern)
        text = raw.decode("latin-1") if is_bytes else raw
        flags = int(pattern.flags & ~re.UNICODE)
        row = place, flags, sorted(_ways_of(sources, Path(file), line)), is_bytes, text
        sys.stdout.write(json.dumps(row) + "\n")


def _ways_of(sources: dict[Path, str], file: Path, line: int) -> set[str]:
    """How the expression that a line assigns is used: any way, where that is not plain to see."""
    lines = sources[file].splitlines()
    names = (re.match(r"\s*(\w+)\s*(?::[^=]+)?=", one) for one in reversed(lines[line - 4 : line]))
    name = next((result[1] for result in names if result), None)
    if name is None:
        return {"match"}
    where = [sources[file]] if name.startswith("_") else list(sources.values())
    used = re.compile(rf"\b{name}\.(match|fullmatch|search|finditer|sub|subn|split|findall)\b")
    ways = {result for source in where for result in used.findall(source)}
    return {_LIKE.get(way, way) for way in ways} or {"match"}


if __name__ == "__main__":
    _write_all()
