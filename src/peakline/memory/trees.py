"""Buffers as a tree for a flame graph: by the scopes of their ops, or by their call stacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.memory.grouped import stack_frames, stack_ids
from peakline.memory.live import MemoryRecords
from peakline.memory.peak import PeakBuffer
from peakline.memory.scopes import NO_OP, Scope, scopes_of, without_small
from peakline.tables import Profile
from peakline.tables.joins import summed

TreeKind = Literal["scope", "stack"]
_MOST_SCOPES = 150
"""So many scopes are drawn as they are; with those that stand for small ones at most twice."""
_MOST_FRAMES = 400
_DEEPEST = 96
"""Of deeper call stacks the innermost frames are one."""
NO_STACK = "(no call stack)"
_COLUMNS = ("id", "label", "parent", "path", "bytes", "count")


def columns_of_tree(root: Scope | None) -> dict[str, list[Any]]:
    """A tree as columns, the outer parts first: ``parent`` is an ``id``, empty for the root.

    A scope that is an op too has that op as a part: ids say which of both they name. The path of
    an op is its name as rows have it, empty for what is of no op.
    """
    if root is None:
        return {name: [] for name in _COLUMNS}
    rows: list[tuple[Any, ...]] = []
    waiting = [(root, "")]
    while waiting:
        scope, parent = waiting.pop()
        kind = "rest" if scope.merged else "op" if scope.buffers else "scope"
        path = "" if kind == "op" and scope.path == NO_OP else scope.path
        own = f"{kind}:{path}"
        rows.append((own, scope.label, parent, path, scope.bytes, scope.count))
        waiting += [(part, own) for part in reversed(scope.parts)]
    return dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def scope_tree(label: str, ops: Iterable[tuple[str, int, int]]) -> Scope | None:
    """The tree of scopes of ops: name, bytes and number of buffers of each; None without any."""
    buffers = [PeakBuffer(op, "", "", "", size, count, None) for op, size, count in ops]
    return without_small(scopes_of(buffers, label), _MOST_SCOPES) if buffers else None


def stack_tree(label: str, stacks: Iterable[tuple[list[str], int, int]]) -> Scope | None:
    """The tree of call stacks: frames from the outermost, bytes and number of buffers of each.

    Paths are places of parts, as ``0/3/1``: a frame's title may hold any character.
    """
    root = Scope(label, "")
    inner: dict[tuple[int, str], Scope] = {}
    found = False
    for frames, size, count in stacks:
        if size <= 0:
            continue
        found = True
        scope = root
        scope.bytes, scope.count = scope.bytes + size, scope.count + count
        names = frames[:_DEEPEST] if len(frames) <= _DEEPEST else [
            *frames[: _DEEPEST - 1], f"({len(frames) - _DEEPEST + 1} frames more)"
        ]  # fmt: skip
        for name in names or [NO_STACK]:
            key = id(scope), name
            part = inner.get(key)
            if part is None:
                path = f"{scope.path}/{len(scope.parts)}" if scope.path else str(len(scope.parts))
                part = inner[key] = Scope(name, path)
                scope.parts.append(part)
            part.bytes, part.count = part.bytes + size, part.count + count
            scope = part
    if not found:
        return None
    for scope in (root, *inner.values()):
        scope.parts.sort(key=lambda part: (-part.bytes, part.label))
    return without_small(root, _MOST_FRAMES)


def tree_of(
    profile: Profile,
    records: MemoryRecords,
    rows: IntpArray,
    sizes: Int64Array,
    counts: Int64Array,
    kind: TreeKind,
    label: str,
) -> Scope | None:
    """Buffers that records ``rows`` begin as a tree, each of ``sizes`` bytes, standing for
    ``counts`` buffers.
    """
    if kind == "scope":
        codes, texts = records.events.names("op").take(rows).grouped()
        each = summed(codes, sizes, len(texts)), summed(codes, counts, len(texts))
        return scope_tree(label, zip(texts, *(one.tolist() for one in each), strict=True))
    ids, codes = stack_ids(records, rows)
    frames = stack_frames(profile, ids)
    own = np.arange(ids.size)
    each = summed(codes, sizes, own.size), summed(codes, counts, own.size)
    names = [frames.get(one, []) for one in ids.tolist()]
    return stack_tree(label, zip(names, *(one.tolist() for one in each), strict=True))
