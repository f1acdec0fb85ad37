"""What is said of several hosts: the document of each, and which of them the others wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peakline.document.model import Table, columns_of
from peakline.text import time_text
from peakline.timing.steps.stragglers import HostSteps, communicates, longer_host
from peakline.timing.steps.variation import Straggler


def hosts_text(hosts: Sequence[tuple[str, HostSteps]]) -> tuple[Straggler | None, str]:
    """The host that the others wait for, and what is said of it."""
    longer = longer_host(hosts)
    straggler = None if longer is None else longer.straggler
    seen = communicates([steps for _, steps in hosts])
    return straggler, straggler_text(straggler, len(hosts), communicates=seen)


def straggler_text(
    straggler: Straggler | None, members: int, one: str = "host", *, communicates: bool
) -> str:
    """Whom the others wait for, of ``members`` that have steps, each of which is ``one``;
    ``communicates`` says whether any collective was seen in these.

    >>> straggler_text(None, 8, communicates=True)
    'no host keeps the others waiting'
    """
    if straggler is None:
        if members < 2:
            return f"fewer than two {one}s have steps: which one the others wait for is not known"
        if not communicates:
            said = "no collectives are recorded: whether"
            return f"{said} a {one} keeps the others waiting is not known"
        return f"no {one} keeps the others waiting"
    if straggler.evidence == "steps":
        return (
            f"straggler: the steps of {straggler.name} take longest, "
            f"{time_text(straggler.behind_ps)} more than the others' in the median step; nothing "
            "shows that the others wait for it"
        )
    how = (
        "it is in collectives for the shortest time"
        if straggler.evidence == "communication"
        else "its computation ends last"
    )
    return (
        f"straggler: the other {one}s wait for {straggler.name}: {straggler.share:.0%} of the "
        f"step time ({time_text(straggler.behind_ps)} in the median step); {how} in "
        f"{straggler.often:.0%} of {straggler.steps:,} common steps"
    )


_NAMES = 4
"""So many hosts, or tools, are named; of more all but the last of these."""


def sessions_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The sessions of ``peakline sessions --json``."""
    cells = [
        (
            row["session_id"],
            _first_few(row["hosts"]),
            "" if row["bytes"] is None else row["bytes"],
            row["modified"] or "",
            _first_few(row["tools"]),
        )
        for row in rows
    ]
    columns = columns_of(session="name", hosts="", size="bytes", modified="", tools="")
    return Table("sessions", columns, cells)


def _first_few(names: Sequence[str]) -> str:
    """The names, the first few where there are many."""
    if len(names) <= _NAMES:
        return ", ".join(names)
    shown = _NAMES - 1
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"
