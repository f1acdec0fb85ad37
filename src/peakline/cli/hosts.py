"""Verbs that show one profile, asked about a session: every host, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from peakline.cli.output import print_json
from peakline.errors import PeaklineError, StrictError
from peakline.text import one_line, time_text

if TYPE_CHECKING:
    from peakline.analysis.timing.stragglers import HostSteps
    from peakline.analysis.timing.variation import Straggler
    from peakline.api import Profile

__all__ = ["StragglerHosts", "tell_hosts"]

Document = dict[str, object]


def tell_hosts(
    path: str,
    session: str | None,
    host: str | None,
    tell: Callable[[Profile], Document | None],
    *,
    strict: bool,
    max_unpacked: int | None,
    json: bool,
    besides: frozenset[str] = frozenset(),
    at_the_end: StragglerHosts | None = None,
) -> None:
    """Call ``tell`` with the open profile of every host that ``path`` means, and print warnings.

    ``tell`` prints for a person, or with ``json`` returns the document: printed alone for one host,
    of several as a list under ``hosts``. Warnings of the kinds ``besides`` are not repeated. A host
    that cannot be read is one line on standard error, unless ``strict`` or none can: then it is
    raised. ``at_the_end`` looks at every profile too, and says in the end who the others wait for.
    """
    import peakline
    from peakline.cli.options import print_warnings
    from peakline.cli.paths import find_hosts
    from peakline.repository import Session

    found = find_hosts(path, session, host)
    several = isinstance(found, Session)
    files: list[tuple[str | None, str]] = [(None, found)] if isinstance(found, str) else []
    if isinstance(found, Session):
        files = [(one.host, one.path) for one in found.hosts()]
    documents: list[Document] = []
    failures: list[PeaklineError] = []
    shown = 0
    for name, place in files:
        try:
            with peakline.open(place, strict=strict, max_unpacked_bytes=max_unpacked) as profile:
                if several and not json:
                    print(f"{chr(10) if shown else ''}host {one_line(str(name))}")
                document = tell(profile)
                if at_the_end is not None and several:
                    at_the_end.add(profile, str(name))
                if document is not None:
                    documents.append(document)
                print_warnings(w for w in profile.warnings if w.kind not in besides)
                shown += 1
        except PeaklineError as error:
            if not several or strict or isinstance(error, StrictError):
                raise
            failures.append(error)
            print(f"peakline: warning: left out: {one_line(str(error))}", file=sys.stderr)
    if failures and not shown:
        raise failures[0]
    straggler = at_the_end.found() if at_the_end is not None and several else None
    if json:
        _print_documents(documents, at_the_end, straggler, several=several)
    elif at_the_end is not None and several:
        print(f"\n{one_line(at_the_end.text(straggler))}")


def _print_documents(
    documents: list[Document],
    at_the_end: StragglerHosts | None,
    straggler: Straggler | None,
    *,
    several: bool,
) -> None:
    if not several:
        print_json(documents[0])
        return
    told: Document = {"hosts": documents}
    if at_the_end is not None:
        told["straggler"] = None if straggler is None else asdict(straggler)
    print_json(told)


@dataclass
class StragglerHosts:
    """Collects the steps and clocks of hosts, and tells which of them the others wait for."""

    parts: list[tuple[str, HostSteps]] = field(default_factory=list)

    def add(self, profile: Profile, host: str) -> None:
        """Take what an open profile has. Raises InputError when it cannot be read."""
        from peakline.analysis.timing.stragglers import host_steps_of

        steps = host_steps_of(profile)
        if steps is not None:
            self.parts.append((host, steps))

    def found(self) -> Straggler | None:
        """The host that the others wait for, if there is one."""
        from peakline.analysis.timing.stragglers import host_straggler

        return host_straggler(self.parts)

    def text(self, straggler: Straggler | None) -> str:
        """One line for a person."""
        if straggler is None:
            return (
                "no host keeps the others waiting"
                if len(self.parts) > 1
                else "fewer than two hosts tell of steps: who keeps the others waiting is not known"
            )
        how = (
            "it is in collectives for the shortest time"
            if straggler.evidence == "communication"
            else "its computation ends last"
        )
        return (
            f"straggler: the other hosts wait for {straggler.name}: {straggler.share:.0%} of the "
            f"step time ({time_text(straggler.behind_ps)} in the median step); {how} in "
            f"{straggler.often:.0%} of {straggler.steps:,} common steps"
        )
