"""Asking a file everything that can be asked: an answer, or one of our own errors."""

import contextlib
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.export.timelines import PerfettoEvents
from tests.export.written import written_file

import peakline
from peakline.__main__ import main
from peakline.cli.memory import show_memory
from peakline.errors import InputError, PeaklineError
from peakline.export.registry import target_names
from peakline.formats import open_reader
from peakline.graph.check import check_graphs
from peakline.tables import TABLES, Columns, Names, Profile, Warnings
from peakline.tables.tables import check_columns
from peakline.toolbox.registry import find_tool
from peakline.tools import available_tools, tool_names

_OUR_FAULT = 70


def ask_everything(path: Path, rng: Random) -> bool:
    """Read every table and run every analysis and tool; whether there was an answer at all.

    Raises whatever is no answer and none of our own errors, and AssertionError where an answer
    depends on what was asked before.
    """
    try:
        _read(path, rng)
    except PeaklineError as error:
        _is_clear(error, path)
        # Another question gets the same error, or an answer from what it needs.
        _use(path, rng)
        return False
    _use(path, rng)
    return True


def _is_clear(error: PeaklineError, path: Path) -> None:
    assert error.exit_code != _OUR_FAULT, error
    assert str(path) in str(error), "which file?"
    assert "\n" not in str(error), "more than one line"


def ask_one(path: Path, other: Path, rng: Random) -> bool:
    """One question, drawn from all; whether there was an answer. Raises as `ask_everything`.

    ``other`` is a whole file, to compare with.
    """
    draw = rng.random()
    if draw < 0.35:
        return run_verb(rng.choice(all_verbs(path, other)))[0] in {0, 1}
    try:
        if draw < 0.45:
            _read(path, rng)
            return True
        with peakline.open(str(path)) as profile:
            try:
                if draw < 0.9:
                    name = rng.choice(tool_names())
                    tool = find_tool(name)
                    if tool.supports(profile):
                        form = rng.choice(tool.formats)
                        content = profile.tool(name, format=form).content
                        if form == "json":
                            json.loads(content)
                else:
                    rng.choice((_memory, _sql, _graph))(profile, rng)
            except PeaklineError as error:
                _is_ours(error)
                return False
    except PeaklineError as error:
        _is_clear(error, path)
        return False
    return True


def read_again(path: Path) -> bool:
    """Export the file to Perfetto and read that with protobuf, packet by packet; whether there was
    anything to export. Raises as `ask_everything`.
    """
    try:
        PerfettoEvents(written_file(path, "perfetto"))
    except PeaklineError as error:
        _is_ours(error)
        return False
    return True


# The reader by itself.


def _read(path: Path, rng: Random) -> None:
    answer: list[dict[str, int]] = []
    tables: dict[str, Columns] = {}
    names: list[str] = []
    for turn in range(2):
        reader, warnings = open_reader(str(path)), Warnings()
        names = names or rng.sample(sorted(reader.tables), len(reader.tables))
        try:
            if turn:
                names.reverse()
                assert reader.duration_ps() >= 0
            for name in names:
                result = check_columns(name, reader.read(name, warnings))
                if turn:
                    _same(name, tables[name], result)
                tables[name] = result
            entries = warnings.entries()
            answer.append({kind: count for kind, count, _ in entries})
            for name in names:
                wanted = {c.name for c in TABLES[name].columns if rng.random() < 0.3}
                wanted.add(next(c.name for c in TABLES[name].columns if not c.nullable))
                _same(name, tables[name], reader.read(name, warnings, wanted))
            assert warnings.entries() == entries, "counted twice"
            for kind, count, detail in entries:
                assert kind.isidentifier()
                assert count > 0
                assert detail
                assert "\n" not in detail, detail
            assert reader.duration_ps() >= 0
        finally:
            reader.close()
    assert answer[0] == answer[1], "what is lost depends on the order of reading"


def _same(table: str, whole: Columns, part: Columns) -> None:
    """The columns of ``part`` are those of ``whole``."""
    assert whole.rows == part.rows, f"{table}: other rows"
    for name in part:
        a, b = whole.get(name), part[name]
        if a is None:
            continue
        mask = whole.is_valid(name)
        assert np.array_equal(mask, part.is_valid(name)), f"{table}.{name}: other nulls"
        if isinstance(a, Names):
            assert isinstance(b, Names)
            assert a.to_list() == b.to_list(), f"{table}.{name}"
        else:
            assert not isinstance(b, Names)
            assert a.dtype == b.dtype
            is_float = a.dtype.kind == "f"
            assert np.array_equal(a[mask], b[mask], equal_nan=is_float), f"{table}.{name}"


# Everything above it.


def _use(path: Path, rng: Random) -> None:
    try:
        with peakline.open(str(path)) as profile:
            for question in (_memory, _sql, _graph, _tools):
                try:
                    question(profile, rng)
                except PeaklineError as error:
                    _is_ours(error)
    except PeaklineError as error:
        _is_clear(error, path)


def _is_ours(error: PeaklineError) -> None:
    assert error.exit_code != _OUR_FAULT, error
    assert "\n" not in str(error), "more than one line"


def _memory(profile: Profile, rng: Random) -> None:
    as_json = rng.random() < 0.7
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        show_memory(profile, as_json=as_json)
    if not as_json:
        return
    for allocator in json.loads(text.getvalue())["allocators"]:
        assert sum(row["bytes"] for row in allocator["peak_buffers"]) == allocator["peak_bytes"]


def _sql(profile: Profile, rng: Random) -> None:
    for name in rng.sample(profile.tables, min(3, len(profile.tables))):
        column = rng.choice(profile.sql(f"describe {name}").column("column_name").to_pylist())
        query = f'select count(*) n, min("{column}") m from {name}'  # noqa: S608 (our own names)
        (counted,) = profile.sql(query).to_pylist()
        if name != "warnings":
            assert counted["n"] == profile.columns(name).rows
    profile.table(rng.choice(profile.tables)).validate(full=True)


def _graph(profile: Profile, rng: Random) -> None:
    check_graphs(profile, consumer=rng.choice((2474, 0, 27)))


def _tools(profile: Profile, rng: Random) -> None:
    for name in available_tools(profile):
        for form in rng.sample(find_tool(name).formats, 1):
            content = profile.tool(name, format=form).content
            if form == "json":
                json.loads(content)


def content(path: Path | str) -> tuple[str, dict[str, list[dict[str, Any]]], dict[str, int]]:
    """Format, rows of every table, and warnings."""
    with peakline.open(str(path)) as profile:
        rows = {t: profile.columns(t).to_pylist() for t in profile.tables if t != "warnings"}
        return profile.format, rows, {warning.kind: warning.count for warning in profile.warnings}


def content_or_error(path: Path | str) -> tuple[Any, str]:
    """The `content`, or None and the message of the InputError."""
    try:
        return content(path), ""
    except InputError as error:
        return None, str(error)


# The command line.


def verbs(path: Path) -> list[list[str]]:
    """What a user may ask of a file."""
    return [
        ["memory", str(path)],
        ["memory", "--json", str(path)],
        ["memory", "--strict", str(path)],
        ["tool", "--list", str(path)],
        ["tool", "memory_profile", str(path)],
        ["tool", "trace_viewer", str(path)],
        ["sql", str(path), "select kind, count from warnings"],
        ["graph", "--check", str(path)],
    ]


def all_verbs(path: Path, other: Path) -> list[list[str]]:
    """Every verb that reads files; what is written goes to standard output or beside the file."""
    name = str(path)
    output = ["-o", f"{name}.out", "--force"]
    return [
        *verbs(path),
        *([verb, name, *more] for verb in ("summary", "steps", "ops", "programs", "trace", "check")
          for more in ([], ["--json"])),
        ["ops", "--by", "module", name],
        ["ops", "--kernels", "--json", name],
        ["graph", name],
        ["diff", name, str(other)],
        ["diff", str(other), name, "--json"],
        ["check", name, "--max-peak", "1MB", "--baseline", str(other)],
        ["report", name, *output],
        *(["export", name, "--to", target, *output] for target in target_names()
          if target != "parquet"),
        ["sql", name, "show tables"],
    ]  # fmt: skip


def run_verb(words: list[str]) -> tuple[int, str]:
    """The exit code and what stands on standard error, held to its rules."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    text = err.getvalue()
    lines = text.splitlines()
    if words[0] == "report" and code == 0:
        # What the page lacks, which was written all the same.
        lines = [line for line in lines if not line.startswith(f"peakline: {words[1]}: no ")]
    assert code in {0, 1, 2, 3}, (words, code, text)
    assert all(line.startswith("peakline: ") for line in lines), (words, text)
    errors = [line for line in lines if not line.startswith("peakline: warning: ")]
    assert len(errors) == (0 if code == 0 else 1), (words, code, text)
    return code, text


def error_of(path: Path | str, *words: str) -> str:
    """The one line of ``peakline memory``, which must end in exit code 3."""
    code, text = run_verb(["memory", str(path), *words])
    assert code == 3
    return text.removeprefix("peakline: ").rstrip("\n")
