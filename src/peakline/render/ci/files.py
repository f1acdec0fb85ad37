"""The files that a check writes: named by the user, whole or as they were, and never the input."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import peakline
from peakline.errors import ExistsError, OutputError, UsageError
from peakline.render.ci.reports import (
    Outcome,
    github_lines,
    gitlab_json,
    junit_xml,
    sarif_document,
)
from peakline.repository import write_atomically

_STDIN = "-"
_HEAD = 4096
GITHUB, GITLAB = "github", "gitlab"


def annotations_for(wanted: str | None, file: str | None) -> str | None:
    """Which annotations are wanted: those of the system that the job runs on for ``auto``, None for
    none. Raises UsageError where GitLab's have no ``file``, or a file has none to hold.
    """
    found = wanted
    if wanted == "auto":
        on_github = os.environ.get("GITHUB_ACTIONS") == "true"
        on_gitlab = bool(os.environ.get("GITLAB_CI"))
        found = GITHUB if on_github else GITLAB if on_gitlab else None
    if found == GITLAB and file is None:
        raise UsageError(
            "GitLab's annotations are a file: name it with --annotations-file (and as the job's "
            "artifacts: reports: codequality)"
        )
    if file is not None and wanted in {None, GITHUB}:
        raise UsageError("--annotations-file holds GitLab's report: add --annotations gitlab")
    return found


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
