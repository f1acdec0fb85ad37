"""Two sessions of several hosts: each host with itself, and who keeps the others waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline import timing
from peakline.findings.ranking import is_worse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peakline.compare.comparison import Comparison, ProfileState
    from peakline.findings.finding import Finding
    from peakline.timing.steps.stragglers import HostSteps


@dataclass(frozen=True, eq=False)
class HostStates:
    """What is compared of a session, by host; ``straggler`` is the finding about its hosts."""

    states: Mapping[str, ProfileState]
    straggler: Finding | None


@dataclass(frozen=True, eq=False)
class HostsComparison:
    """The comparisons of the hosts that both sessions have, by name; ``only_before`` and
    ``only_after`` are the others. ``straggler`` is the finding of each session, None without one.
    """

    hosts: Mapping[str, Comparison]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    straggler: tuple[Finding | None, Finding | None]

    def findings(self, which: str) -> list[Finding]:
        """The straggler, where it is ``new``, ``gone`` or ``worse``."""
        before, after = self.straggler
        is_same = (
            before is not None
            and after is not None
            and before.evidence["device"] == after.evidence["device"]
        )
        if which == "worse":
            return [after] if is_same and before and after and is_worse(before, after) else []
        chosen = after if which == "new" else before
        return [] if chosen is None or is_same else [chosen]

    def as_json(self) -> dict[str, object]:
        """What ``peakline diff --json`` prints of sessions of several hosts."""
        return {
            "hosts": [{"host": host, **found.as_json()} for host, found in self.hosts.items()],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
            "findings": {
                which: [finding.as_json() for finding in self.findings(which)]
                for which in ("new", "gone", "worse")
            },
        }


def straggler_of(hosts: list[tuple[str, HostSteps]]) -> Finding | None:
    """The finding about the hosts of one session."""
    from peakline.findings.kinds.straggler import of_hosts
    from peakline.repository.names import newest_of_workers

    hosts = newest_of_workers(hosts)
    longer = timing.longer_host(hosts)
    return None if longer is None else of_hosts(longer, len(hosts))


def compare_hosts(
    before: HostStates, after: HostStates, *, allocator: str | None = None
) -> HostsComparison:
    """What changed of each host; raises NotFoundError if no profile has the allocator."""
    from peakline.compare.comparison import compare_profiles

    common = [host for host in before.states if host in after.states]
    return HostsComparison(
        {
            host: compare_profiles(before.states[host], after.states[host], allocator=allocator)
            for host in common
        },
        tuple(host for host in before.states if host not in after.states),
        tuple(host for host in after.states if host not in before.states),
        (before.straggler, after.straggler),
    )
