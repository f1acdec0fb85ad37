"""The outcome of a check as annotations of a commit: GitHub's commands, GitLab's Code Quality."""

from __future__ import annotations

import hashlib
import json

from peakline.render.ci.outcome import Outcome, rule_of
from peakline.text import one_line, valid_text


def github_lines(outcome: Outcome) -> list[str]:
    """A workflow command for each failed limit, and a notice of what was not compared.

    Text is escaped as the runner reads it, so that no name from a profile begins another command.
    """
    lines = []
    for check, place in outcome.located():
        if check.verdict == "pass":
            continue
        title = f"{check.name}: {outcome.of(check)}"
        properties = [] if place is None else [f"file={_property(place[0])}", f"line={place[1]}"]
        properties.append(f"title={_property(title)}")
        kind = "notice" if check.passed else "error"
        lines.append(f"::{kind} {','.join(properties)}::{_message(check.reason)}")
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


def _message(text: str) -> str:
    text = valid_text(one_line(text))
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
