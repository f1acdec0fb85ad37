"""Answers of the real XProf: one subprocess for many files, restarted where the library crashes."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peakline.schema import XSpace, XStat

__all__ = [
    "Answer",
    "Question",
    "ask_xprof",
    "groups_by_tag",
    "step_names_by_tag",
    "tag_events",
]

RUNNER = Path(__file__).parent / "peers" / "run_xprof.py"
TAG = "conformance_tag"


@dataclass(frozen=True)
class Question:
    """An XSpace file (plain or gzip), and whether its memory profile, groups, trace are wanted.

    ``tools`` are more tools by name, each with the options it is asked with; ``files`` the other
    hosts of the session, for tools that show several.
    """

    path: Path
    memory_profile: bool = True
    groups: bool = False
    trace: bool = False
    tools: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    files: Sequence[Path] = ()


@dataclass(frozen=True)
class Answer:
    """``error`` is the library's message, or ``crashed``; else what was asked for is there."""

    error: str | None
    memory_profile: bytes | None = None
    xspace: bytes | None = None
    trace: bytes | None = None
    tools: Mapping[str, bytes | str] = field(default_factory=dict)
    """What each tool gave; a text is the error it gave instead."""


def ask_xprof(python: str, questions: Sequence[Question]) -> list[Answer]:
    """One answer per question, from the XProf that ``python`` can import."""
    with tempfile.TemporaryDirectory() as folder:
        requests: list[dict[str, Any]] = [
            {
                "path": str(question.path),
                "memory_profile": f"{folder}/{number}.json" if question.memory_profile else None,
                "xplane": f"{folder}/{number}.pb" if question.groups else None,
                "trace_viewer": f"{folder}/{number}.trace" if question.trace else None,
                "files": [str(path) for path in question.files],
                "tools": [
                    [name, dict(options), f"{folder}/{number}.{name}"]
                    for name, options in question.tools.items()
                ],
            }
            for number, question in enumerate(questions)
        ]
        errors: list[str | None] = []
        results = Path(folder) / "results"
        while len(errors) < len(requests):
            pending = Path(folder) / "requests.json"
            pending.write_text(json.dumps(requests[len(errors) :]))
            results.write_text("")
            process = subprocess.run(
                [python, str(RUNNER), str(pending), str(results)],
                check=False,
                capture_output=True,
                text=True,
            )
            errors += [json.loads(line) for line in results.read_text().splitlines()]
            if len(errors) < len(requests):
                if process.returncode >= 0:
                    raise RuntimeError(f"XProf did not run: {process.stderr[-2000:]}")
                errors.append("crashed")
        return [
            Answer(error)
            if error is not None
            else Answer(
                None,
                _read(request["memory_profile"]),
                _read(request["xplane"]),
                _read(request["trace_viewer"]),
                {name: _answer(path) for name, _, path in request["tools"]},
            )
            for error, request in zip(errors, requests, strict=True)
        ]


def _answer(path: str) -> bytes | str:
    failed = Path(f"{path}.error")
    return failed.read_text() if failed.exists() else Path(path).read_bytes()


def _read(path: str | None) -> bytes | None:
    return None if path is None else Path(path).read_bytes()


def tag_events(space: XSpace) -> XSpace:
    """A copy of ``space`` whose events carry their number in the file, to be found again."""
    tagged = XSpace()
    tagged.CopyFrom(space)
    number = 0
    for plane in tagged.planes:
        tag = max(plane.stat_metadata, default=0) + 1
        plane.stat_metadata[tag].id = tag
        plane.stat_metadata[tag].name = TAG
        for line in plane.lines:
            for event in line.events:
                event.stats.add(metadata_id=tag, int64_value=number)
                number += 1
    return tagged


def groups_by_tag(content: bytes) -> dict[int, int | None]:
    """Group by event number of a tagged XSpace that XProf has grouped.

    Step events that XProf dropped are absent.
    """
    return {
        stats[TAG].int64_value: stats["group_id"].int64_value if "group_id" in stats else None
        for stats in _tagged_stats(content)
    }


def step_names_by_tag(content: bytes) -> dict[int, str]:
    """The name of the step by event number, for events that stand for one."""
    return {
        stats[TAG].int64_value: stats["step_name"].str_value
        for stats in _tagged_stats(content)
        if "step_name" in stats
    }


def _tagged_stats(content: bytes) -> Iterator[dict[str, XStat]]:
    """The stats of every tagged event by name, the first of each name."""
    for plane in XSpace.FromString(content).planes:
        names = {key: metadata.name for key, metadata in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                stats: dict[str, XStat] = {}
                for stat in event.stats:
                    stats.setdefault(names.get(stat.metadata_id, ""), stat)
                if TAG in stats:
                    yield stats
