"""Which rank a trace of PyTorch is of: the members of its outermost object that say so.

``distributedInfo`` is written by ``torch.profiler`` when a process group is there as the window
begins (``torch/profiler/profiler.py``); for traces on demand Kineto writes it after the events,
with the ranks of a group as one text (``libkineto/src/output_json.cpp``). Every number is taken
from a text as well. A ``rank`` of any other object, an event's arguments first of all, says nothing
of the process: it may be the one inside a group, or another's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from peakline.formats.chrome_trace.texts import unescaped
from peakline.tables.rank_facts import RankFacts, RankGroup

DISTRIBUTED = "distributedInfo"
_EVENTS = "traceEvents"
_MOST_RANKS = 1 << 24
"""No job is that large: a greater number is damage."""
_RUNS = ("group_trace_id", "tw_job")
"""Of one recording: the id that whoever requested it gave all ranks; the job of the scheduler."""

_KEY = re.compile(r'[\s,]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*+:\s*+')
_LATE = re.compile(rf'"{DISTRIBUTED}"\s*+:\s*+')


def facts_of_root(root: Mapping[str, bytes]) -> RankFacts:
    """The facts from the members of the outermost object, as they are written.

    >>> facts_of_root({"distributedInfo": b'{"rank": "3", "world_size": 8}'}).rank
    3
    """
    info = _parsed(root.get(DISTRIBUTED, b""))
    info = info if isinstance(info, dict) else {}
    world = _number(info.get("world_size"))
    rank = _number(info.get("rank"))
    if rank is not None and world is not None and rank >= world:
        rank = None
    devices = _parsed(root.get("deviceProperties", b""))
    run = next((f"{key}={text}" for key in _RUNS if (text := text_of(root.get(key, b"")))), "")
    return RankFacts(
        rank,
        world,
        _text(info.get("backend")),
        tuple(_groups(info.get("pg_config"))),
        text_of(root.get("host_name", b"")),
        None,
        run,
        len(devices) if isinstance(devices, list) else None,
    )


def facts_of_ends(head: bytes, tail: bytes = b"") -> RankFacts:
    """The same from a trace's first bytes and its last, wherever they are cut.

    Only what is a member of the outermost object counts, before the events or after them.
    """
    root = dict(_members(head.decode("utf-8", "replace")))
    if DISTRIBUTED not in root:
        text = tail.decode("utf-8", "replace")
        for start in _LATE.finditer(text):
            members = dict(_members("{" + text[start.start() :], whole=True))
            if members:
                root |= members
                break
    return facts_of_root(root)


def text_of(raw: bytes) -> str:
    """The text of a JSON string, empty for anything else."""
    return unescaped(raw[1:-1].decode("utf-8", "replace")) if raw[:1] == b'"' else ""


def _members(text: str, *, whole: bool = False) -> Iterator[tuple[str, bytes]]:
    """The members of the object with which ``text`` begins, until its events or the cut.

    With ``whole`` none, unless the object is the last thing of the text.
    """
    decoder = json.JSONDecoder()
    text = text.removeprefix("\ufeff").lstrip()
    result: list[tuple[str, bytes]] = []
    at = 1
    while text[:1] == "{" and (match := _KEY.match(text, at)) and match[1] != _EVENTS:
        try:
            _, at = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            break
        result.append((match[1], text[match.end() : at].encode()))
    if not whole or text[at:].strip() == "}":
        yield from result


def _parsed(raw: bytes) -> object:
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None


def _number(value: object) -> int | None:
    """A count or a rank, written as a number or as the text of one."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 9:
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_RANKS
    return value if isinstance(value, int) and is_count else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _groups(config: object) -> Iterator[RankGroup]:
    for one in config if isinstance(config, list) else ():
        if not isinstance(one, dict):
            continue
        ranks = one.get("ranks")
        if isinstance(ranks, str):
            ranks = _parsed(ranks.encode())
        numbers = [_number(rank) for rank in ranks] if isinstance(ranks, list) else []
        size = _number(one.get("pg_size"))
        known = [rank for rank in numbers if rank is not None]
        if len(known) < len(numbers) or (size is not None and size != len(known)):
            known = []  # the list was shortened
        name = one.get("pg_name")
        yield RankGroup(
            str(name) if isinstance(name, (str, int)) else "",
            _text(one.get("pg_desc")),
            tuple(sorted(known)),
        )
