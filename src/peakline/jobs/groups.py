"""What the groups of a job's ranks are for: data, tensor, pipeline, expert or context parallel, by
what the program calls them, else by what they are seen to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from peakline.jobs.members import Job
from peakline.jobs.pairing import Rows
from peakline.tables.rank_facts import RankGroup

PIPELINE = "pipeline"
_WORDS = {
    "expert": {"ep", "expert", "experts", "moe"},
    "context": {"cp", "sp", "context", "sequence", "ulysses", "ring"},
    PIPELINE: {"pp", "pipe", "pipeline", "stage", "stages"},
    "tensor": {"tp", "mp", "tensor", "model"},
    "data": {"dp", "ddp", "fsdp", "hsdp", "data", "batch", "replica", "replicas", "replicate"},
}
"""By the first that has a word of the name: the data parallel group of experts is one of experts,
and Megatron's TENSOR_MODEL_PARALLEL_GROUP one of tensors. The names are those of PyTorch's
device meshes (``mesh_dp``), of Megatron-LM's ``parallel_state`` and of DeepSpeed's ``groups``."""
_MESSAGES = frozenset(("send", "recv", "send-recv"))


@dataclass(frozen=True)
class Group:
    """Ranks that communicate; ``kind`` is what for, empty where neither its name nor its messages
    say it.
    """

    name: str
    description: str
    ranks: tuple[int, ...]
    kind: str


def kind_by_name(*names: str) -> str:
    """What a group is for by what the program calls it; empty where that does not say.

    >>> kind_by_name("mesh_dp_shard"), kind_by_name("default_pg")
    ('data', '')
    """
    words = set(re.split(r"[^a-z]+", " ".join(names).lower()))
    return next((kind for kind, own in _WORDS.items() if own & words), "")


def groups_of(job: Job, rows: Rows | None = None) -> list[Group]:
    """The groups that the files name, each once; ``rows`` are their collectives, where known."""
    result: dict[tuple[str, tuple[int, ...]], RankGroup] = {}
    for one in job.profiles:
        for group in one.facts.groups:
            result.setdefault((group.name, group.ranks), group)
    by_messages = set() if rows is None else _with_messages_only(rows)
    return [
        Group(
            one.name, one.description, one.ranks,
            kind_by_name(one.name, one.description)
            or (PIPELINE if _text(one.ranks) in by_messages else ""),
        )
        for one in result.values()
    ]  # fmt: skip


def _text(ranks: Iterable[int]) -> str:
    return f"[{','.join(map(str, ranks))}]"


def _with_messages_only(rows: Rows) -> set[str]:
    """The groups, by their ranks as text, whose members send and receive and do nothing else."""
    messages = rows.is_kind(_MESSAGES)
    of_messages, others = (
        {rows.texts[code] for code in np.unique(rows.group[mask]).tolist() if code >= 0}
        for mask in (messages, ~messages)
    )
    return of_messages - others
