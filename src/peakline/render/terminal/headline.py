"""What the screens of all verbs begin with: the answer in one line, and which profile it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.document.profile import profile_text
from peakline.render.terminal.layout import Part, Shown, Text, cut, terminal_width, width_of
from peakline.text import one_line

if TYPE_CHECKING:
    from peakline.api import Profile

_LEAST_NAME = 16
_STYLES = {"error": "bold red", "warning": "bold yellow"}


def headed(sentence: str, profile: Profile, *, moment: bool = False) -> list[Shown]:
    """The headline, and below it which profile it is about."""
    line = profile_line(profile, moment=moment)
    return [Text(sentence, "bold", 2), line] if sentence else [line]


def profile_line(profile: Profile, *, moment: bool = False) -> Part:
    """Which profile it is, and how long, if it is not of one ``moment``; the path is cut to the
    terminal's width.
    """
    rest = one_line(f" ({profile_text(profile, moment=moment)})")
    width = terminal_width()
    room = None if width is None else max(width - width_of(rest), _LEAST_NAME)
    return Text(f"{cut(one_line(profile.path), room)}{rest}", "dim", is_prose=False)


def severity_style(severity: str) -> str:
    """The style of a finding's title."""
    return _STYLES.get(severity, "bold")
