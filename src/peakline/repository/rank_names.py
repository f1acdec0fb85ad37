"""What the name of a file says of its rank in a job, in the spellings that people use.

There is no standard: ``rank0.json.gz``, ``trace_rank_3_step_10.json``, ``rank[3]_trace.json``,
``dp0_tp1.json``, ``1700000000-TP-0-DP-1.trace.json.gz`` (vLLM, SGLang), ``node0/rank1.json``,
``attempt_0/3/stderr.log`` (torchrun). A number counts where the word before it is one for ranks, or
where it is the whole name of a folder; any other number (``run1.json``) says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_PARALLEL = "tp|dp|pp|ep|cp|dcp|sp|mp|data|tensor|model|pipeline|pipe|expert|context|sequence"
_COORDINATE = (
    rf"(?:{_PARALLEL}|node|local|group|global_local)(?:[_\-. ]?parallel)?[_\-. ]?rank"
    r"|tp|dp|pp|ep|cp|dcp|sp|mp|node|host|machine|gpu|device|stage|replica|shard|local|process|proc"
)
_RANK = r"(?:global|world)?[_\-. ]?rank"
_WEAK = "worker|trainer|task|kineto"
"""Words for ranks that also stand before other numbers, such as a process id."""
_CYCLE = (
    r"(?:global[_\-]?)?steps?|iterations?|iters?|its?|epochs?|cycles?|attempts?|batch|checkpoint"
)
_NUMBER = re.compile(
    r"(?P<date>(?<!\d)\d{4}[-_.]\d{2}[-_.]\d{2}(?:[-_.t ]\d{2}[-_.:]\d{2}[-_.:]\d{2})?(?!\d))"
    rf"|(?<![a-z])(?:(?P<coordinate>{_COORDINATE})|(?P<rank>{_RANK})|(?P<weak>{_WEAK})"
    rf"|(?P<cycle>{_CYCLE}))[\s_\-.=\[(:#]{{0,2}}(?P<number>\d{{1,9}})(?!\d)"
    r"|(?P<other>\d+)"
)
_FOLDER = re.compile(r"\d{1,5}")
_TIME_DIGITS = 6
"""Digits of a date (``20261120``), of a time of day or of a time since 1970."""
_ALONE_IS_LITTLE = {"ep", "mp", "sp", "cp", "local", "stage"}
"""Words that mean something else as well (``ep3``: an epoch; ``stage2`` of ZeRO), unless others
stand beside them.
"""

_ENDINGS = re.compile(
    r"(?:\.pt)?(?:\.trace)?(?:\.xplane)?"
    r"(?:\.(?:json|pbtxt|pb|pickle|pkl|pprof|prof|profile|err|log|out|txt))?(?:\.gz)?$"
)


@dataclass(frozen=True)
class RankName:
    """What one name says. ``place`` are its coordinates, each a word and a number, empty where it
    has none; ``rank`` the number that is said to be the rank, None where only its coordinates are
    there. ``is_sure``: by a word that means nothing else.

    ``cycle`` are the steps and attempts, ``times`` the dates and times, ``others`` all numbers that
    say nothing. ``form`` is the name without all these.
    """

    place: tuple[tuple[str, int], ...]
    rank: int | None
    is_sure: bool
    cycle: tuple[int, ...]
    times: tuple[int, ...]
    others: tuple[int, ...]
    form: str

    @property
    def is_rank(self) -> bool:
        """Whether it is one of a job, if others are beside it that differ in the same words."""
        return any(word not in _ALONE_IS_LITTLE for word, _ in self.place) or len(self.place) > 1


def stem_of(name: str) -> str:
    """A file's name, which may have folders before it, without what all of its kind end in.

    >>> stem_of("node0/rank1.pt.trace.json.gz")
    'node0/rank1'
    """
    return _ENDINGS.sub("", name) or name


@lru_cache(maxsize=8192)
def rank_name(name: str) -> RankName:
    """What ``name`` says, the path of a file below the folder of the job.

    >>> rank_name("trace_rank_3_step_10.json").rank
    3
    >>> rank_name("run1.json").place
    ()
    """
    text = name.lower().removesuffix(".gz")
    place: dict[str, int] = {}
    rank: int | None = None
    weak: list[tuple[str, int]] = []
    cycle: list[int] = []
    times: list[int] = []
    others: list[int] = []

    def met(match: re.Match[str]) -> str:
        nonlocal rank
        if match["date"]:
            times.append(int(re.sub(r"\D", "", match["date"])))
            return "#"
        if match["other"]:
            (times if len(match["other"]) >= _TIME_DIGITS else others).append(int(match["other"]))
            return "#"
        number = int(match["number"])
        word = next(w for k in ("coordinate", "rank", "weak", "cycle") if (w := match[k]))
        word = re.sub(r"[^a-z]", "", word)
        if match["cycle"]:
            cycle.append(number)
        elif match["rank"]:
            rank = number
            place["rank"] = number
        else:
            place[word] = number
            if match["weak"]:
                weak.append((word, number))
        return f"{word}#"

    parts = text.split("/")
    folders = [n for n, part in enumerate(parts[:-1]) if _FOLDER.fullmatch(part)]
    form = "/".join("#" if n in folders else _NUMBER.sub(met, part) for n, part in enumerate(parts))
    is_sure = rank is not None
    numbers = [int(parts[n]) for n in folders]
    if rank is None and len(numbers) == 1 and not weak:
        place["folder"] = numbers[0]
        weak.append(("folder", numbers[0]))
    else:
        cycle = [*numbers, *cycle]
    if rank is None and len(weak) == 1 and len(place) == 1:
        rank = weak[0][1]
    return RankName(
        tuple(sorted(place.items())), rank, is_sure, tuple(cycle), tuple(times), tuple(others), form
    )


def ranks_of_all(names: Sequence[RankName]) -> list[int | None]:
    """The rank of every name of a job: one by a doubtful word only where all such are as dense as
    ranks are, not process ids; none where the same number stands in several places
    (``node0/rank0``, ``node1/rank0``): it counts within each.
    """
    places: dict[int, set[object]] = {}
    for one in names:
        if one.rank is not None:
            places.setdefault(one.rank, set()).add((one.place, one.form))
    if any(len(seen) > 1 for seen in places.values()):
        return [None] * len(names)
    doubtful = [one.rank for one in names if one.rank is not None and not one.is_sure]
    is_dense = max(doubtful, default=0) < 4 * len(doubtful) + 8
    return [one.rank if one.is_sure or is_dense else None for one in names]


_OF_RANKS = {"rank", "worker", "task", "trainer"}
_OF_MACHINES = {"node", "host", "machine"}


def differ_as_ranks(names: Sequence[RankName]) -> bool:
    """Whether files of such names are ranks of one job: their coordinates differ, and where only a
    word says so that also stands before sizes (``tp2``, ``gpu4``), runs or process ids, as those of
    ranks do, from 0 on with few gaps.
    """
    values = _varying(names)
    if any(_is_of_ranks(word) or word in _OF_MACHINES for word in values):
        return True
    return bool(values) and all(
        min(seen) == 0 and max(seen) <= 2 * len(seen) for seen in values.values()
    )


def are_ranks_alone(names: Sequence[RankName]) -> bool:
    """Whether the word that differs says so, however else the names differ
    (``host-a.rank0``, ``host-b.rank1``, but not ``node1_before``, ``node2_after``).
    """
    return any(map(_is_of_ranks, _varying(names)))


def _is_of_ranks(word: str) -> bool:
    return word in _OF_RANKS or word.endswith("rank")


def _varying(names: Sequence[RankName]) -> dict[str, set[int]]:
    """The numbers of each word that has several."""
    values: dict[str, set[int]] = {}
    for one in names:
        for word, number in one.place:
            values.setdefault(word, set()).add(number)
    return {word: seen for word, seen in values.items() if len(seen) > 1}
