"""A baseline: the figures of one run or of several, and what the last of them was made of.

The file holds what ``peakline check --json`` prints of the last run, and under ``runs`` the figures
of every run, oldest first: a few hundred bytes each, of the latest `MOST_RUNS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakline.check.allowance import MOST_RUNS, Key, Run
from peakline.check.baseline import memory_figures, read_baseline, write_baseline
from peakline.check.programs import program_figures, write_programs
from peakline.check.time import TimeState, read_ops
from peakline.compare.state import MemoryState
from peakline.errors import InputError

_LARGEST = 2.0**62


@dataclass(frozen=True)
class Baseline:
    """``memory`` and ``time`` are of the last of ``runs``; ``time`` is None where it says nothing
    of steps.
    """

    memory: MemoryState
    time: TimeState | None = None
    runs: tuple[Run, ...] = ()

    @property
    def has_memory(self) -> bool:
        """Whether there is memory to compare; also where there is nothing at all, which fails."""
        return bool(self.memory.allocators or self.memory.programs) or self.time is None


def baseline_of(memory: MemoryState, time: TimeState) -> Baseline:
    """The baseline that one run is."""
    run = figures_of(memory, time)
    return Baseline(memory, time if time.step_ps is not None else None, (run,))


def figures_of(memory: MemoryState, time: TimeState | None) -> dict[Key, float]:
    """What a baseline holds of every run."""
    of_time = {} if time is None else time.figures()
    return {
        **memory_figures(memory),
        **program_figures(memory.programs),
        **{(name, ""): value for name, value in of_time.items()},
    }


def joined(baselines: Sequence[Baseline]) -> Baseline:
    """The runs of all of one or more baselines together; what is compared in detail is the last."""
    runs = tuple(run for one in baselines for run in one.runs)
    last = baselines[-1]
    return Baseline(last.memory, last.time, runs[-MOST_RUNS:])


def followed_by(baseline: Baseline | None, memory: MemoryState, time: TimeState) -> Baseline:
    """The ``baseline`` with one more run, without the oldest of too many."""
    this = baseline_of(memory, time)
    return this if baseline is None else joined((baseline, this))


def baseline_document(baseline: Baseline, profile: Mapping[str, object]) -> dict[str, object]:
    """What the file of a baseline holds; ``profile`` is that of ``check --json``."""
    return {
        "profile": dict(profile),
        "allocators": write_baseline(baseline.memory),
        "programs": write_programs(baseline.memory.programs),
        "time": None if baseline.time is None else baseline.time.as_json(),
        "runs": [
            [{"name": name, "of": of, "value": value} for (name, of), value in run.items()]
            for run in baseline.runs
        ],
    }


def baseline_text(document: Mapping[str, object]) -> str:
    """A baseline's document as text: one figure a line, so that a commit's diff can be read."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read_history(content: bytes, name: str) -> Baseline:
    """The baseline in a document of ``check --json``, ``memory --json`` or ``--update-baseline``.

    Raises InputError, with the file's ``name``, where it is none of them.
    """
    memory = read_baseline(content, name)
    try:
        document = json.loads(content)
        time = _time(document.get("time"))
        runs = tuple(_run(run) for run in _list(document.get("runs", [])))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: is no baseline that peakline check wrote: {error}") from error
    return Baseline(memory, time, runs[-MOST_RUNS:] or (figures_of(memory, time),))


def _time(value: object) -> TimeState | None:
    if value is None:
        return None
    row = _object(value)
    step = _whole(row, "step_time_ps")
    if step is None:
        return None
    return TimeState(
        _whole(row, "steps") or 0,
        step,
        _whole(row, "p95_step_time_ps"),
        _number(row, "input_wait"),
        _number(row, "compile"),
        _whole(row, "compile_ps"),
        _number(row, "idle"),
        _parts(row),
        spread_ps=_whole(row, "step_spread_ps"),
        ops=read_ops([*map(_object, _list(row.get("ops", [])))]),
    )


def _parts(row: Mapping[str, object]) -> tuple[tuple[str, int, float], ...]:
    result = []
    for part in map(_object, _list(row.get("parts", []))):
        label, each, share = part.get("part"), _whole(part, "per_step_ps"), _number(part, "share")
        if not isinstance(label, str) or each is None or share is None:
            raise ValueError("a part of the steps has no part, per_step_ps and share")
        result.append((label, each, share))
    return tuple(result)


def _run(value: object) -> Run:
    result: dict[Key, float] = {}
    for row in map(_object, _list(value)):
        name, of, number = row.get("name"), row.get("of"), _number(row, "value")
        if not isinstance(name, str) or not isinstance(of, str) or number is None:
            raise ValueError("a figure of runs has no name, of and value")
        result[name, of] = number
    return result


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError("runs is no list of lists")  # noqa: TRY004 (the document's value)
    return value


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("an object is expected")  # noqa: TRY004 (the document's value)
    return value


def _number(row: Mapping[str, object], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{name} is no positive number")
    return value


def _whole(row: Mapping[str, object], name: str) -> int | None:
    value = _number(row, name)
    return None if value is None else int(value)
