"""One file as it comes in every way: the answers differ in its name alone."""

import contextlib
import gzip
import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import peakline
from peakline.__main__ import main
from peakline.errors import PeaklineError
from peakline.service.access import Access
from peakline.service.capturing import SessionsInTheMaking
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings
from peakline.service.uploading import Uploads
from peakline.tables import Names

_VERBS = ("summary", "memory", "steps")
Answer = dict[str, Any]


class Reading:
    """Reads files at a path, under another name, packed, on standard input and as an upload;
    ``folder`` is for them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "log").mkdir()
        settings = Settings(roots=(str(folder / "log"),))
        self._uploads = Uploads(settings, Access(settings), Metrics(), SessionsInTheMaking())
        self._count = 0

    def answers(self, name: str, data: bytes) -> dict[str, Answer]:
        """What is said of the file, by how it came; first at its path."""
        self._count += 1
        folder = self._folder / str(self._count)
        # Stems that stand nowhere else.
        file = f"first-name.{name.partition('.')[2]}"
        places = {"path": file, "another name": "other-name"}
        if not data.startswith(b"\x1f\x8b"):
            places["packed"] = f"{file}.gz"
        result = {}
        for how, file in places.items():
            path = folder / how / file
            path.parent.mkdir(parents=True)
            path.write_bytes(gzip.compress(data, 1) if how == "packed" else data)
            result[how] = _answer(str(path), b"")
        result["standard input"] = _answer("-", data)
        with contextlib.suppress(PeaklineError):
            uploaded = self._uploads.upload("", f"s{self._count}", "", [data])
            result["upload"] = _answer(uploaded.path, b"")
        return result


def differences(answers: dict[str, Answer]) -> list[str]:
    """Which answers are not those about the file at its path, and how."""
    right = answers["path"]
    return [
        f"{how}: {part}: {_excerpt(right.get(part), answer.get(part))}"
        for how, answer in answers.items()
        for part in sorted(right.keys() | answer.keys())
        if right.get(part) != answer.get(part)
    ]


def _excerpt(right: object, other: object) -> str:
    """Where two answers begin to differ."""
    one, two = str(right), str(other)
    at = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
    begin = max(0, at - 60)
    return f"{one[begin : at + 100]!r} is {two[begin : at + 100]!r}"


def _answer(path: str, data: bytes) -> Answer:
    """Tables, warnings and verbs of the file; its name is written ``FILE``, and so is that of a
    program that has no other.
    """
    result: Answer = {}
    stem = Path(path).name.partition(".")[0]
    with _standard_input(data):
        try:
            with peakline.open(path) as profile:
                for table in profile.tables:
                    if table != "warnings":
                        columns = profile.columns(table)
                        result[table] = [
                            (name, _values(columns[name], stem), columns.is_valid(name).tobytes())
                            for name in columns
                        ]
                result["format"] = profile.format
                result["duration"] = profile.duration_ps
                result["warnings"] = [
                    (one.kind, one.count, _plain(one.detail, path)) for one in profile.warnings
                ]
        except PeaklineError as error:
            result["error"] = type(error).__name__, _plain(str(error), path)
    for verb in _VERBS:
        out, err = io.StringIO(), io.StringIO()
        with (
            _standard_input(data),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main([verb, path, "--json"])
        result[verb] = code, _plain(out.getvalue(), path), _plain(err.getvalue(), path)
    return result


def _values(column: Any, stem: str) -> object:
    if isinstance(column, Names):
        return ["FILE" if value == stem else value for value in column.to_list()]
    return column.dtype.str, column.tobytes()


def _plain(text: str, path: str) -> str:
    """``text`` without the file's name, and the host's, which is a part of it."""
    name = re.escape(path) if path != "-" else r'(?<![^\s"])-(?=[:"])'
    stem = re.escape(Path(path).name.partition(".")[0])
    text = re.sub(rf'{name}|(?<=["@ ]){stem}(?=[":])', "FILE", text)
    return re.sub(r'"host": "[^"]*"', '"host": "FILE"', text)


@contextlib.contextmanager
def _standard_input(data: bytes) -> Any:
    with mock.patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data))):
        yield
