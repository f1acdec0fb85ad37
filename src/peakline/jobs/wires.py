"""Which groups' transfers are slow: collectives that take longer than equal ones of other groups
when nobody is late any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Float64Array, Int64Array
from peakline.jobs.members import Job, numbers_text
from peakline.jobs.pairing import Paired, medians
from peakline.trace.distribution import deviation, median_error

SLOWER = 1.3
"""A group's transfers are slow from so many times those of others on; placement alone makes some
difference."""
_SURE = 4.0
_FEWEST = 3
_FAST, _MIDDLE = 25, 50


@dataclass(frozen=True, eq=False)
class SlowWire:
    """Groups whose transfers take ``ratio`` times as long as those of equal collectives elsewhere.

    ``groups`` are their members, by place; ``machines`` those that have a member in each of them
    and in no group that is as fast as the others. ``usual_ps`` is by collective what others take.
    """

    groups: tuple[tuple[int, ...], ...]
    machines: tuple[str, ...]
    ratio: float
    usual_ps: Mapping[int, float]

    def title(self, job: Job) -> str:
        """The groups as a person names them."""
        ranks = {job.members[n].number for group in self.groups for n in group}
        numbers = [number for number in ranks if number is not None]
        return f"ranks {numbers_text(numbers)}" if len(numbers) == len(ranks) else "some ranks"


def transfers_of(paired: Paired) -> Float64Array:
    """How long each collective took after the last of its members came, in ps: the median of its
    members; NaN where it is not known.
    """
    known = np.flatnonzero(paired.transfer >= 0)
    return medians(
        paired.collective[known], paired.transfer[known].astype(np.float64), paired.count
    )


def slow_wire_of(job: Job, paired: Paired) -> SlowWire | None:
    """The groups whose transfers are slow; None where there are none, or nothing to compare."""
    transfer = transfers_of(paired)
    first = paired.order[paired.bounds[:-1]]
    # Of a host's messages it is not recorded how long they were under way.
    of_host = np.array([not own.profile.has_device for own in job.members], np.bool_)
    messages = paired.rows.is_kind(("send", "recv")) & of_host[paired.rows.member]
    transfer[messages[first]] = np.nan
    known = np.isfinite(transfer)
    if not known.any():
        return None
    group, members = _groups(paired)
    rows = paired.rows
    kind, size = rows.kind[first], rows.size_bytes[first]
    # Within a machine, and between machines, transfers differ by nature.
    machines = [{job.members[n].machine for n in own} for own in members]
    span = np.array([0 if "" in own else len(own) for own in machines], np.int64)[group]
    usual: dict[int, float] = {}
    slow: set[int] = set()
    fast: set[int] = set()
    ratios = []
    keys = np.stack([kind, size, paired.members, span])
    for key in np.unique(keys[:, known], axis=1).T:
        alike = np.flatnonzero(known & (keys == key[:, None]).all(axis=0))
        numbers, code = np.unique(group[alike], return_inverse=True)
        if numbers.size < 2:
            continue
        middle = medians(code, transfer[alike], numbers.size)
        noise = deviation(transfer[alike] - middle[code])
        for k, number in enumerate(numbers.tolist()):
            # A machine may be in most of the groups: the fast ones say what is usual.
            share = _FAST if key[3] else _MIDDLE
            others = float(np.percentile(np.delete(middle, k), share))
            own = alike[code == k]
            beyond = middle[k] - others
            if (
                own.size >= _FEWEST
                and middle[k] > SLOWER * others
                and beyond > _SURE * max(median_error(noise, own.size), 0.01 * others)
            ):
                slow.add(number)
                ratios.append((float(transfer[own].sum()), float(others) * own.size))
                usual.update(dict.fromkeys(own.tolist(), others))
            else:
                fast.add(number)
    if not usual or not slow - fast:
        return None
    chosen = [members[number] for number in sorted(slow)]
    reach = {len(machines[number]) for number in slow}
    rest = [members[n] for n in fast - slow if len(machines[n]) in reach]
    apart = _apart(job, chosen, rest)
    if not apart and len(slow) > len(fast - slow):
        return None
    ratio = sum(a for a, _ in ratios) / max(sum(b for _, b in ratios), 1.0)
    return SlowWire(tuple(chosen), apart, ratio, usual)


def _groups(paired: Paired) -> tuple[Int64Array, list[tuple[int, ...]]]:
    """A number for each collective by who takes part, and who that is."""
    known: dict[tuple[int, ...], int] = {}
    result = np.zeros(paired.count, np.int64)
    member = paired.rows.member[paired.order]
    bounds = paired.bounds.tolist()
    for number in range(paired.count):
        own = tuple(sorted(member[bounds[number] : bounds[number + 1]].tolist()))
        result[number] = known.setdefault(own, len(known))
    return result, list(known)


def _apart(job: Job, slow: list[tuple[int, ...]], fast: list[tuple[int, ...]]) -> tuple[str, ...]:
    """The machines that all slow groups have in common and no fast one has."""
    of = [{job.members[n].machine for n in group} for group in slow]
    others = {job.members[n].machine for group in fast for n in group}
    common = set.intersection(*of) if of else set()
    return tuple(sorted(common - others - {""}))
