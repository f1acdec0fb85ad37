"""What is known of a kind of warning, whatever its count."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WarningKind:
    """``code`` is what every face calls it. ``means``, ``changes`` (in the answers) and ``advice``
    are sentences for docs/warnings.md.

    ``is_counted``: its detail is a noun in the plural, before which the count is written.
    ``is_printed``: a person can do something about it, so the command line prints it; others are
    in the table ``warnings`` and in JSON only.
    """

    code: str
    means: str
    changes: str
    advice: str
    is_counted: bool = True
    is_printed: bool = True


RECORD_AGAIN = "Record the profile again."
NOTHING_TO_DO = "Nothing: the answer says what the file holds."
