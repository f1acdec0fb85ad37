"""The outcome of a check as SARIF 2.1.0, as code scanning reads it: a result per failed limit."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

from peakline.check.verdict import Check
from peakline.render.ci.outcome import Outcome, rule_of
from peakline.text import one_line, valid_text

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


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
    text = valid_text(one_line(f"{check.name}: {of}: {check.reason}"))
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
