"""The outcome of a check as JUnit's XML, as Jenkins and GitLab read it: a test case per limit."""

from __future__ import annotations

import re
from xml.sax.saxutils import quoteattr

from peakline.render.ci.outcome import Outcome
from peakline.text import one_line, valid_text

_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""


def junit_xml(outcome: Outcome) -> str:
    """One suite; what could not be compared is a skipped case. Ends with a line break."""
    checks = outcome.checks
    failed = sum(not check.passed for check in checks)
    skipped = sum(check.verdict == "not compared" for check in checks)
    counts = f'tests="{len(checks)}" failures="{failed}" errors="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="peakline check" {counts} time="0">',
        f'  <testsuite name={_attribute(outcome.path)} {counts} skipped="{skipped}" time="0">',
    ]
    for check, place in outcome.located():
        name = f"{check.name}: {outcome.of(check)}"
        # Classes are shown as folders, divided at points.
        head = f'    <testcase name={_attribute(name)} classname="peakline.check" time="0"'
        if place is not None:
            head += f" file={_attribute(place[0])}"
        if check.verdict == "pass":
            lines.append(f"{head}/>")
            continue
        kind = "skipped" if check.passed else "failure"
        text = f"      <{kind} message={_attribute(check.reason)}"
        text += "" if check.passed else f' type="{check.name}"'
        lines += [f"{head}>", f"{text}/>", "    </testcase>"]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def _attribute(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", valid_text(one_line(text))))
