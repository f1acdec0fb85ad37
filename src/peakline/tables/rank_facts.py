"""Which rank of a job a profile is of, as far as the file itself says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RankGroup:
    """A group of ranks that communicate: ``name`` as the profiler calls it (``"0"``),
    ``description`` as the program does (``default_pg``, ``mesh_dp``), its global ``ranks``
    ascending, empty where the file does not have all of them.
    """

    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class RankFacts:
    """What a profile says of its place in a job; None or empty is what it does not say.

    ``rank`` is the global one of ``world_size``. ``host_name`` is the machine, ``process`` the
    process id on it, ``devices`` how many devices the process saw. ``run`` is what only profiles
    of one recording have in common.

    >>> RankFacts(rank=3, world_size=8).rank
    3
    """

    rank: int | None = None
    world_size: int | None = None
    backend: str = ""
    groups: tuple[RankGroup, ...] = ()
    host_name: str = ""
    process: int | None = None
    run: str = ""
    devices: int | None = None
