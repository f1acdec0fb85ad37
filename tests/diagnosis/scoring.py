"""What Peakline says of a pair, and whether it is right: from its JSON alone."""

from __future__ import annotations

import importlib
import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from peakline.__main__ import main
from tests.diagnosis.pair import Pair

RECORDED = Path(__file__).parents[1] / "data" / "diagnosis"
_PROGRAMS = Path(__file__).parent / "programs"
FAULTY, HEALTHY = "faulty", "healthy"
_ROWS = 3
"""So many rows of a finding are read: what stands further down names too many."""
_NEAR = 0.1
_OUR_FAULT = 70
"""What a verb exits with where Peakline itself fails."""


@dataclass
class Score:
    """``verdict`` is SAID (a finding of the right kind names the culprit), ADVICE (a ranked saving
    does), CAUSE? (the culprit, another kind), KIND (the kind, not the culprit), or MISSED.

    ``said`` is that finding in short, ``line`` and ``magnitude`` whether it states what is expected
    (None where nothing is), ``alarms`` what the twin is warned of, ``diff`` whether the comparison
    of both has a new or worse finding that is right, or a row that names it. ``saving`` is whether
    the saving of memory comes true (None without one).
    """

    name: str
    verdict: str
    said: str = ""
    line: bool | None = None
    magnitude: bool | None = None
    saving: bool | None = None
    saving_said: str = ""
    diff: str = ""
    alarms: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def names() -> list[str]:
    """All pairs that are recorded."""
    return sorted(path.name for path in RECORDED.iterdir() if path.is_dir())


def pair_of(name: str) -> Pair:
    """What the program declares."""
    return importlib.import_module(f"tests.diagnosis.programs.{name}").PAIR


def answer_of_verb(*words: object) -> dict:
    """What a verb prints as JSON; nothing where the profile has nothing of it."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*map(str, words), "--json"])
    if code == _OUR_FAULT:
        raise AssertionError(err.getvalue())
    try:
        return json.loads(out.getvalue())
    except ValueError:
        return {}


def score(name: str, answer: Callable[..., dict] = answer_of_verb) -> Score:
    """Ask the verbs about both variants, and judge the answers: ``answer("memory", path)``."""
    pair = pair_of(name)
    faulty, healthy = paths_of(name, FAULTY), paths_of(name, HEALTHY)
    memory = answer("memory", faulty[-1])
    documents = [memory, answer("steps", faulty[-1])]
    twin = [answer(verb, healthy[-1]) for verb in ("memory", "steps")]
    compared = [healthy[-1], faulty[-1]] if len(faulty) == 1 else faulty
    difference = answer("diff", *compared)
    if len(faulty) > 1:
        documents.append(difference)
    results = _findings(*documents)
    best, verdict = _best(pair, results)
    saving = next((one for one in _savings(memory) if _helps(pair, one)), None)
    if verdict != "SAID" and saving is not None:
        verdict, best = "ADVICE", {"kind": saving["kind"], "severity": "saving", **saving}
    result = Score(name, verdict)
    if best is not None:
        result.said = f"{best['severity']} {best['kind']}: {best['title']}"
        text = json.dumps(best)
        if pair.line:
            result.line = bool(re.search(pair.line, text, re.IGNORECASE))
        if pair.magnitude is not None:
            least = pair.tolerance * abs(pair.magnitude)
            result.magnitude = any(abs(x - pair.magnitude) <= least for x in _numbers(best))
        result.saving, result.saving_said = _comes_true(pair, best, memory, twin[0])
    result.alarms = [
        f"{one['kind']}: {one['title']}"
        for one in _findings(*twin)
        if one["severity"] != "info" and not _is_allowed(one, pair.twin_allowed)
    ]
    result.others = [
        f"{one['kind']}: {one['title']}"
        for one in results
        if one["severity"] != "info"
        and one is not best
        and not _is_allowed(one, (*pair.faulty_allowed, pair.kind, pair.culprit))
    ]
    result.diff = _diff(pair, difference)
    return result


def paths_of(name: str, variant: str) -> list[Path]:
    """The profiles of a variant in order of time: a session's folder, or files."""
    folder = RECORDED / name / variant
    if (folder / "plugins").is_dir():
        return [folder]
    return sorted(path for path in folder.iterdir() if path.name != "truth.json")


SCORED = {
    file
    for name in names()
    for variant in (FAULTY, HEALTHY)
    for path in paths_of(name, variant)[-1:]
    for file in ([path] if path.is_file() else path.rglob("*.gz"))
}
"""The files that a score is of: of a series the last."""


def _findings(*documents: dict) -> list[dict]:
    """All findings of the documents, each once."""
    seen: dict[tuple[str, str], dict] = {}

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if {"kind", "severity", "title"} <= set(node):
                seen.setdefault((node["kind"], node["title"]), node)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    for document in documents:
        walk(document)
    return list(seen.values())


def _spoken(finding: dict) -> str:
    evidence = dict(finding.get("evidence") or {})
    rows = evidence.pop("rows", None) or []
    return json.dumps(
        [finding["kind"], finding["title"], finding.get("suggestion"), evidence, rows[:_ROWS]]
    )


def _best(pair: Pair, result: list[dict]) -> tuple[dict | None, str]:
    grades = {}
    for one in result:
        names_it = re.search(pair.culprit, _spoken(one), re.IGNORECASE) is not None
        is_kind = re.search(pair.kind, one["kind"], re.IGNORECASE) is not None
        grade = {(True, True): "SAID", (True, False): "CAUSE?", (False, True): "KIND"}
        if (names_it, is_kind) in grade:
            grades.setdefault(grade[names_it, is_kind], one)
    for grade in ("SAID", "CAUSE?", "KIND"):
        if grade in grades:
            return grades[grade], grade
    return None, "MISSED"


def _savings(memory: dict) -> list[dict]:
    return [one for part in memory.get("allocators", []) for one in part.get("savings", [])[:3]]


def _helps(pair: Pair, saving: dict) -> bool:
    return bool(
        pair.savings
        and re.search(pair.savings, saving["kind"], re.IGNORECASE)
        and re.search(pair.culprit, json.dumps(saving), re.IGNORECASE)
    )


def _comes_true(pair: Pair, best: dict, faulty: dict, healthy: dict) -> tuple[bool | None, str]:
    """Whether what is said to go is what went, within a tenth or between its bounds."""
    evidence = best.get("evidence") or best
    upper = evidence.get("saved_bytes", evidence.get("copy_bytes"))
    if pair.about != "memory" or not isinstance(upper, int | float):
        return None, ""
    lower = evidence.get("least_saved_bytes", upper)
    went = _peak(faulty) - _peak(healthy)
    said = f"{lower:,.0f} to {upper:,.0f} of {_peak(faulty):,}, went {went:,}"
    return (abs(went - upper) <= _NEAR * abs(went)) or lower <= went <= upper, said


def _peak(memory: dict) -> int:
    """The peak of the allocators; where none recorded anything what the programs need."""
    parts = memory.get("allocators") or memory.get("programs") or []
    return max((part["peak_bytes"] for part in parts), default=0)


def _numbers(node: object) -> list[float]:
    if isinstance(node, bool):
        return []
    if isinstance(node, int | float):
        return [float(node)]
    if isinstance(node, dict):
        return [x for value in node.values() for x in _numbers(value)]
    return [x for value in node for x in _numbers(value)] if isinstance(node, list) else []


def _is_allowed(finding: dict, patterns: tuple[str, ...]) -> bool:
    text = f"{finding['kind']}: {finding['title']}"
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _diff(pair: Pair, document: dict) -> str:
    """FINDING, ROW (a row of what grew names it) or MISSED."""
    changed = document.get("findings") or {}
    parts = [changed, (document.get("time") or {}).get("findings") or {}]
    new = [
        one
        for part in parts
        if isinstance(part, dict)
        for key in ("new", "worse")
        for one in part.get(key, [])
    ] + (_findings(document) if isinstance(changed, list) else [])
    if any(
        re.search(pair.kind, one["kind"], re.IGNORECASE)
        and re.search(pair.culprit, json.dumps(one), re.IGNORECASE)
        for one in new
    ):
        return "FINDING"
    rows = [
        row
        for part in document.get("allocators", [])
        for row in sorted(part.get("groups", []), key=lambda row: -row["delta_bytes"])[:3]
        if row["delta_bytes"] > 0
    ]
    ops = [row for row in (document.get("time") or {}).get("ops", []) if row["delta_ps"] > 0]
    rows += sorted(ops, key=lambda row: -row["delta_ps"])[:3]
    named = any(re.search(pair.culprit, json.dumps(row), re.IGNORECASE) for row in rows)
    return "ROW" if named else "MISSED"
