"""The outcome of a check for programs of continuous integration: its reports, and their files.

A file is named by the user; it is written whole or stays as it was, and is never the input.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import peakline
from peakline.check.verdict import Check
from peakline.document.check import name_of
from peakline.errors import ExistsError, OutputError, UsageError
from peakline.repository import write_atomically
from peakline.safe_text import (
    github_message,
    github_property,
    one_line,
    sarif_text,
    valid_text,
    xml_attribute,
)

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Outcome:
    """The ``checks`` of a profile at ``path``. ``names`` are those of the allocators on screens;
    ``places`` are file and line to point at, for each check, None where there is none.
    """

    path: str
    checks: Sequence[Check]
    names: Mapping[str, str] = field(default_factory=dict)
    places: Sequence[tuple[str, int] | None] = ()

    def of(self, check: Check) -> str:
        """The allocator or program of a check, or the steps."""
        return one_line(name_of(check, self.names))

    def located(self) -> list[tuple[Check, tuple[str, int] | None]]:
        """Every check with its place."""
        places = [*self.places, *[None] * (len(self.checks) - len(self.places))]
        return list(zip(self.checks, places, strict=True))


def rule_of(check: Check) -> str:
    """The name of a check as a word: ``step-time``, ``peak-against-the-baseline``."""
    return check.name.replace(" ", "-")


def github_lines(outcome: Outcome) -> list[str]:
    """A workflow command for each failed limit, and a notice of what was not compared.

    Text is escaped as the runner reads it, so that no name from a profile begins another command.
    """
    lines = []
    for check, place in outcome.located():
        if check.verdict == "pass":
            continue
        title = f"{check.name}: {outcome.of(check)}"
        at = [] if place is None else [f"file={github_property(place[0])}", f"line={place[1]}"]
        properties = [*at, f"title={github_property(title)}"]
        kind = "notice" if check.passed else "error"
        lines.append(f"::{kind} {','.join(properties)}::{github_message(check.reason)}")
    return lines


def gitlab_json(outcome: Outcome) -> str:
    """A Code Quality report: a list with an entry for each failed limit."""
    entries = []
    for check, place in outcome.located():
        if check.passed:
            continue
        file, line = place or (outcome.path, 1)
        of = outcome.of(check)
        mark = hashlib.sha256(f"{rule_of(check)}\0{of}".encode("utf-8", "replace")).hexdigest()
        entries.append(
            {
                "description": valid_text(one_line(f"{check.name}: {of}: {check.reason}")),
                "check_name": f"peakline-{rule_of(check)}",
                "fingerprint": mark,
                "severity": "major",
                # A path is one below the repository's root, without ./ in front.
                "location": {"path": valid_text(file).removeprefix("./"), "lines": {"begin": line}},
            }
        )
    return json.dumps(entries, indent=2) + "\n"


def junit_xml(outcome: Outcome) -> str:
    """One suite; what could not be compared is a skipped case. Ends with a line break."""
    checks = outcome.checks
    failed = sum(not check.passed for check in checks)
    skipped = sum(check.verdict == "not compared" for check in checks)
    counts = f'tests="{len(checks)}" failures="{failed}" errors="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="peakline check" {counts} time="0">',
        f'  <testsuite name={xml_attribute(outcome.path)} {counts} skipped="{skipped}" time="0">',
    ]
    for check, place in outcome.located():
        name = f"{check.name}: {outcome.of(check)}"
        # Classes are shown as folders, divided at points.
        head = f'    <testcase name={xml_attribute(name)} classname="peakline.check" time="0"'
        if place is not None:
            head += f" file={xml_attribute(place[0])}"
        if check.verdict == "pass":
            lines.append(f"{head}/>")
            continue
        kind = "skipped" if check.passed else "failure"
        text = f"      <{kind} message={xml_attribute(check.reason)}"
        text += "" if check.passed else f' type="{check.name}"'
        lines += [f"{head}>", f"{text}/>", "    </testcase>"]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def sarif_document(outcome: Outcome, version: str) -> dict[str, object]:
    """The document; ``version`` is that of the program.

    A result points at the line of the program that takes most, where it is known, else at the limit
    in the file that sets it, else at the profile; what it is about is a logical location.
    """
    rules = list({rule_of(check): check for check in outcome.checks}.values())
    places = [rule_of(check) for check in rules]
    results = [
        _result(outcome, check, place, places.index(rule_of(check)))
        for check, place in outcome.located()
        if not check.passed
    ]
    driver = {
        "name": "peakline",
        "version": version,
        "semanticVersion": version,
        "rules": [_rule(check) for check in rules],
    }
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}],
    }


def _rule(check: Check) -> dict[str, object]:
    return {
        "id": rule_of(check),
        "name": "".join(word.capitalize() for word in check.name.split()),
        "shortDescription": {"text": f"Limit on the {check.name} of a profile"},
        "help": {"text": "docs/check.md says what is measured, and what a limit means."},
        "defaultConfiguration": {"level": "error"},
    }


def _result(
    outcome: Outcome, check: Check, place: tuple[str, int] | None, rule: int
) -> dict[str, object]:
    file, line = place or (outcome.path, 1)
    of = valid_text(outcome.of(check))
    text = sarif_text(f"{check.name}: {of}: {check.reason}")
    mark = hashlib.sha256(f"{rule_of(check)}\0{of}".encode()).hexdigest()
    return {
        "ruleId": rule_of(check),
        "ruleIndex": rule,
        "level": "error",
        "kind": "fail",
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(file)},
                    "region": {"startLine": max(line, 1)},
                },
                "logicalLocations": [{"name": of, "fullyQualifiedName": f"{of}/{check.name}"}],
            }
        ],
        # The same limit of the same allocator is the same alert in the next run.
        "partialFingerprints": {"peaklineLimit/v1": mark},
    }


def _uri(path: str) -> str:
    """A path as a URI: relative ones stay so, and name a file of the repository."""
    quoted = quote(valid_text(path).replace("\\", "/"), errors="replace")
    return f"file://{quoted}" if quoted.startswith("/") else quoted


_STDIN = "-"
_HEAD = 4096
GITHUB, GITLAB = "github", "gitlab"


def annotations_for(wanted: str | None, file: str | None) -> str | None:
    """Which annotations are wanted: those of the system that the job runs on for ``auto``, None for
    none. Raises UsageError where GitLab's have no ``file``, or a file has none to hold.
    """
    result = wanted
    if wanted == "auto":
        on_github = os.environ.get("GITHUB_ACTIONS") == "true"
        on_gitlab = bool(os.environ.get("GITLAB_CI"))
        result = GITHUB if on_github else GITLAB if on_gitlab else None
    if result == GITLAB and file is None:
        raise UsageError(
            "GitLab's annotations are a file: name it with --annotations-file (and as the job's "
            "artifacts: reports: codequality)"
        )
    if file is not None and wanted in {None, GITHUB}:
        raise UsageError("--annotations-file holds GitLab's report: add --annotations gitlab")
    return result


def check_places(places: Mapping[str, str], sources: Sequence[str]) -> None:
    """UsageError or OutputError where one of the ``places``, by option, cannot be written to:
    because it is one of ``sources`` or of the others, no text, or in no directory.
    """
    seen: dict[str, str] = {}
    for option, place in places.items():
        if place == _STDIN:
            raise UsageError(f"--{option} needs a file")
        real = os.path.realpath(place)
        if real in seen and Path(place).is_file():
            raise UsageError(f"{place}: is the file of --{seen[real]} too; choose another name")
        seen[real] = option
        _check_place(place, sources)


def _check_place(place: str, sources: Sequence[str]) -> None:
    target = Path(place)
    for source in sources:
        if source and target.exists() and Path(source).exists() and target.samefile(source):
            raise UsageError(f"{place}: is the profile itself; choose another name")
    try:
        head = b""
        target.parent.stat()
        if target.is_file():
            with target.open("rb") as file:
                head = file.read(_HEAD)
    except OSError as error:
        raise _unwritable(place, error) from None
    if b"\0" in head:
        raise UsageError(f"{place}: is no text; choose another name")


def write_reports(outcome: Outcome, places: Mapping[str, str], annotations: str | None) -> str:
    """Write what ``places`` name, by option; what is to be printed besides, empty for nothing."""
    reports: dict[str, Callable[[], str]] = {
        "junit": lambda: junit_xml(outcome),
        "sarif": lambda: json.dumps(sarif_document(outcome, peakline.__version__), indent=2) + "\n",
    }
    if annotations == GITLAB:
        reports["annotations-file"] = lambda: gitlab_json(outcome)
    for option, text in reports.items():
        if option in places:
            write_text(places[option], text())
    return "".join(f"{line}\n" for line in github_lines(outcome)) if annotations == GITHUB else ""


def write_text(place: str, text: str) -> None:
    """The whole file, or what was there before; raises UsageError or OutputError."""
    content = text.encode("utf-8", "replace")
    write_atomically(place, lambda stream: stream.write(content), replace=True)


def append_text(place: str, text: str) -> None:
    """A new file is there when it is whole. To one that is there the text is appended by one call
    of the system, so that a process that is killed appends all of it or nothing.
    """
    try:
        if not os.path.lexists(place):
            with suppress(ExistsError):  # another was faster
                write_atomically(place, lambda stream: stream.write(text.encode()))
                return
        with Path(place).open("ab", buffering=0) as file:
            size = file.tell()
            content = f"\n{text}" if size else text
            left = content.encode()
            try:
                while left:
                    left = left[file.write(left) or 0 :]
            except OSError:  # the disk is full
                file.truncate(size)
                raise
    except OSError as error:
        raise _unwritable(place, error) from None
    except UsageError as error:
        raise OutputError(str(error)) from None


def _unwritable(place: str, error: OSError) -> OutputError:
    return OutputError(f"{place}: cannot be written: {error.strerror or error}")
