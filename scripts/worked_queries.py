"""The worked queries of ``docs/sql.md``: each one is run, and its answer stands behind it.

A query is a fenced ``sql`` block whose first line names the sample it is asked of:
``-- demo`` is the session that comes with the package, everything else a file under tests/data.
The ``text`` block that follows is what ``peakline sql`` prints.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from peakline.__main__ import main

_DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
_BLOCK = re.compile(
    r"```sql\n-- (?P<sample>\S+)\n(?P<query>.*?)```\n\n```text\n(?P<answer>.*?)```\n", re.DOTALL
)


def worked_queries(page: str) -> list[tuple[str, str]]:
    """Sample and query of every block."""
    return [(match["sample"], match["query"]) for match in _BLOCK.finditer(page)]


def sql_page(page: str) -> Iterator[str]:
    """The lines of the page with fresh answers."""

    def fresh(match: re.Match[str]) -> str:
        answer = _answer(match["sample"], match["query"])
        return f"```sql\n-- {match['sample']}\n{match['query']}```\n\n```text\n{answer}```\n"

    yield from _BLOCK.sub(fresh, page).rstrip("\n").split("\n")


def _answer(sample: str, query: str) -> str:
    path = files("peakline") / "demo" if sample == "demo" else _DATA / sample
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["sql", str(path), query])
    if code:
        raise SystemExit(f"{query}\n{err.getvalue()}")
    return out.getvalue().rstrip("\n") + "\n"
