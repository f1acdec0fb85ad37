"""What a rank that works longer than its peers does with the time, and what differs.

The same kernels, launched as often with the same shapes, that take longer are a slower device (its
clock, a neighbour); other shapes, or more of them, are more work; what the host spends is its
input, a function or an op; what no event explains is said to be that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Float64Array, Int64Array
from peakline.jobs.excess import EPISODES, Fault, OwnWork
from peakline.jobs.members import Job, Member
from peakline.timing.step_breakdown import PARTS

SLOWER_DEVICE = "slower_device"
MORE_WORK = "more_work"
INPUT = "input"
HOST = "host"
COMPILE = "compile"
COPIES = "copies"
UNATTRIBUTED = "unattributed"
_OF_PART = {
    "input_wait": INPUT,
    "compile": COMPILE,
    "launch": HOST,
    "host_compute": HOST,
    "device_to_device": COPIES,
    "device_to_host": COPIES,
    "host_to_device": COPIES,
    "idle": UNATTRIBUTED,
    "unknown": UNATTRIBUTED,
}
_ALIKE = 0.02
"""Counts and sizes that differ by less are the same."""
_EXPLAINS = 0.3
"""A function, or an op, is named where it explains so much of the excess."""
_MOST = 5
PEERS = 64
"""Of more peers an even choice says what is usual."""


@dataclass(frozen=True)
class Difference:
    """An op, kernel or function of a mean step: the rank's own time and count, its peers', and the
    sizes of its inputs where they are recorded.
    """

    name: str
    side: str
    own_ps: float
    peer_ps: float
    own_count: float
    peer_count: float
    own_elements: int = -1
    peer_elements: int = -1
    own_shape: str = ""
    peer_shape: str = ""

    @property
    def excess_ps(self) -> float:
        """How much longer it takes than on the peers."""
        return self.own_ps - self.peer_ps

    def as_json(self) -> dict[str, object]:
        """Its fields, times in whole ps."""
        return vars(self) | {"own_ps": round(self.own_ps), "peer_ps": round(self.peer_ps)}


@dataclass(frozen=True)
class Cause:
    """Why: ``kind`` is one of the words of this module, ``part`` the part of the step's time that
    exceeds most and ``part_ps`` by how much. ``ratio`` is how many times as long the same kernels
    take (slower_device), or how many times as much there is to do (more_work); 0 otherwise.
    ``rows`` are what differs, most first.
    """

    kind: str
    part: str
    part_ps: float
    ratio: float
    rows: tuple[Difference, ...]

    @property
    def name(self) -> str:
        """What explains most of it; empty where nothing does."""
        return self.rows[0].name if self.rows else ""


def cause_of(job: Job, work: OwnWork, fault: Fault) -> Cause:
    """What the member of a fault does longer than its peers in the steps of the fault."""
    own = job.members[fault.member]
    same = work.role == work.role[fault.member]
    alike = np.flatnonzero(~same if fault.is_stage else same)
    peers = [job.members[n] for n in alike.tolist() if n != fault.member]
    peers = peers[:: max(len(peers) // PEERS, 1)]
    steps = {label for label, place in job.steps.items() if fault.steps[place]}
    mine = _parts(own, steps)
    theirs = np.median([_parts(peer, steps) for peer in peers], axis=0)
    beyond = mine - theirs
    beyond[PARTS.index("communication")] = -np.inf
    at = int(beyond.argmax())
    part, part_ps = PARTS[at], float(beyond[at])
    rows = _differences(own, peers, steps, usual=fault.when == EPISODES)
    if part == "compute":
        return _of_device(rows, part_ps)
    return _of_host(rows, part, part_ps)


def _parts(member: Member, steps: set[str]) -> Float64Array:
    rows = _rows(member, steps)
    if not rows.size:
        return np.zeros(len(PARTS))
    return np.asarray(member.steps.parts[rows].mean(axis=0), np.float64)


def _rows(member: Member, steps: set[str]) -> Int64Array:
    return np.array([k for k, label in enumerate(member.labels) if label in steps], np.int64)


def _differences(
    own: Member, peers: Sequence[Member], steps: set[str], *, usual: bool
) -> list[Difference]:
    """What the member's steps spend on what, beside what those of its peers do; with ``usual``
    beside its own other steps as well, whatever is more.
    """
    rows = _rows(own, steps)
    result = []
    tables = [
        ({key: k for k, key in enumerate(zip(p.work.side, p.work.names, strict=True))}, p,
         _rows(p, steps))
        for p in peers
    ]  # fmt: skip
    for k, key in enumerate(zip(own.work.side, own.work.names, strict=True)):
        # A peer names as many as take most of its time: what it does not may be one of the others.
        where = [
            (p.work, table[key], rows_of) if key in table and rows_of.size else None
            for table, p, rows_of in tables
            if key in table or not p.work.is_cut
        ]
        if not where:
            continue
        times = [0.0 if one is None else float(one[0].ps[one[1], one[2]].mean()) for one in where]
        counts = [
            0.0 if one is None else float(one[0].count[one[1], one[2]].mean()) for one in where
        ]
        elements = [int(one[0].elements[one[1]]) for one in where if one is not None]
        elements = [size for size in elements if size >= 0]
        shapes = [one[0].shape[one[1]] for one in where if one is not None]
        ps, peer = float(own.work.ps[k, rows].mean()), float(np.median(times))
        if usual:
            others = np.setdiff1d(np.arange(own.work.ps.shape[1]), rows)
            peer = max(peer, float(own.work.ps[k, others].mean()) if others.size else 0.0)
        result.append(
            Difference(
                key[1], key[0], ps, peer,
                float(own.work.count[k, rows].mean()), float(np.median(counts)),
                int(own.work.elements[k]), int(np.median(elements)) if elements else -1,
                own.work.shape[k], max(shapes, key=shapes.count) if shapes else "",
            )
        )  # fmt: skip
    return sorted(result, key=lambda one: -one.excess_ps)


def _of_device(rows: Sequence[Difference], part_ps: float) -> Cause:
    kernels = [one for one in rows if one.side == "device"]
    longer = [one for one in kernels if one.excess_ps > 0]
    more = [one for one in rows if one.side != "function" and _is_more(one)]
    if any(one.side == "device" or _is_larger(one) for one in more):
        # An op's shape says more than a kernel's grid.
        more.sort(key=lambda one: (one.side != "host" or not _is_larger(one), -one.own_ps))
        return Cause(MORE_WORK, "compute", part_ps, _more(more[0]), _first(more, rows))
    same = sum(one.own_ps for one in longer), sum(one.peer_ps for one in longer)
    ratio = same[0] / same[1] if same[1] else 0.0
    return Cause(SLOWER_DEVICE, "compute", part_ps, ratio, tuple(longer[:_MOST]))


def _first(chosen: Sequence[Difference], rows: Sequence[Difference]) -> tuple[Difference, ...]:
    return (*chosen, *(one for one in rows if one not in chosen and one.excess_ps > 0))[:_MOST]


def _is_more(one: Difference) -> bool:
    """Whether there is more to do: larger inputs, or the same more often."""
    often = one.excess_ps > 0 and one.own_count > (1 + _ALIKE) * one.peer_count + 0.5
    return often or _is_larger(one)


def _is_larger(one: Difference) -> bool:
    return one.own_elements > (1 + _ALIKE) * one.peer_elements > 0


def _more(one: Difference) -> float:
    if _is_larger(one):
        return one.own_elements / one.peer_elements
    return one.own_count / one.peer_count if one.peer_count else 0.0


def _of_host(rows: Sequence[Difference], part: str, part_ps: float) -> Cause:
    more = [one for one in rows if one.side == "host" and _is_more(one)]
    if part == "host_compute" and more:
        larger = [one for one in more if _is_larger(one)]
        if larger and sum(one.excess_ps for one in larger) >= _EXPLAINS * part_ps:
            most = max(larger, key=lambda one: one.own_ps)
            return Cause(MORE_WORK, part, part_ps, _more(most), _first(larger, rows))
    named = [one for one in rows if one.side != "device" and one.excess_ps >= _EXPLAINS * part_ps]
    # A function says where in the program it is; an op only what.
    named.sort(key=lambda one: (one.side != "function", -one.excess_ps))
    kind = _OF_PART[part]
    if kind == UNATTRIBUTED and named:
        kind = HOST
    same = [one for one in rows if one.side == "host" and one.excess_ps > 0]
    total = sum(one.excess_ps for one in same)
    if part == "host_compute" and not more and total > 0:
        # The same ops as often: the processor is slower, where no single one explains it.
        top = same[0].excess_ps / total
        if top < _EXPLAINS and not any(one.side == "function" for one in named):
            ratio = sum(o.own_ps for o in same) / max(sum(o.peer_ps for o in same), 1.0)
            return Cause(SLOWER_DEVICE, part, part_ps, ratio, tuple(same[:_MOST]))
    return Cause(kind, part, part_ps, 0.0, tuple(named[:_MOST]))
