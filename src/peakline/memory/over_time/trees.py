"""Buffers as a tree for a flame graph: by the scopes of their ops, or by their call stacks, with
small parts put together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.memory.over_time.groups import stack_frames, stack_ids
from peakline.memory.over_time.live import MemoryRecords
from peakline.memory.peak.explained import BEFORE_PROFILE, RESERVED, UNATTRIBUTED, PeakBuffer
from peakline.tables import Profile
from peakline.tables.joins import summed

SPECIAL = (BEFORE_PROFILE, UNATTRIBUTED, RESERVED)
NO_OP = "(no op)"
_DEEPEST_NAME = 64
"""Names with more parts than this are not split further."""


@dataclass(eq=False)
class Scope:
    """A scope, or an op where it has no ``parts``. Sizes are bytes.

    ``label`` is its own part of the name, ``path`` the whole one. ``bytes`` is the sum over its
    parts or, of an op, over ``buffers``. ``merged`` is how many parts one that stands for small
    ones has, else 0.
    """

    label: str
    path: str
    bytes: int = 0
    count: int = 0
    parts: list[Scope] = field(default_factory=list)
    buffers: list[PeakBuffer] = field(default_factory=list)
    merged: int = 0


def scopes_of(buffers: Iterable[PeakBuffer], label: str) -> Scope:
    """The tree of the op names of ``buffers``; their bytes add up to those of the root exactly.

    A scope that is an op too has that op as a part. Scopes with a single part are one with it.
    Rows of 0 bytes or less have no place in it.
    """
    by_op: dict[str, list[PeakBuffer]] = {}
    for buffer in buffers:
        if buffer.bytes > 0:
            by_op.setdefault(buffer.op or NO_OP, []).append(buffer)
    root = Scope(label, "")
    inner: dict[str, Scope] = {"": root}
    pieces = {op: [op] if op in SPECIAL else op.split("/", _DEEPEST_NAME) for op in by_op}
    for own in pieces.values():
        for depth in range(1, len(own)):
            path = "/".join(own[:depth])
            if path not in inner:
                inner[path] = Scope(own[depth - 1] or "/", path)
                inner["/".join(own[: depth - 1])].parts.append(inner[path])
    for op, buffers_of in by_op.items():
        leaf = Scope(pieces[op][-1] or "/", op)
        leaf.bytes = sum(buffer.bytes for buffer in buffers_of)
        leaf.count = sum(buffer.count for buffer in buffers_of)
        leaf.buffers = buffers_of
        scope = inner[op] if op in inner else inner["/".join(pieces[op][:-1])]
        scope.parts.append(leaf)
    # An inner scope is older than those within it: their sums come first from behind.
    for scope in reversed(inner.values()):
        scope.parts = [_shortened(part) for part in scope.parts]
        scope.parts.sort(key=lambda part: (-part.bytes, part.path, len(part.parts)))
        scope.bytes = sum(part.bytes for part in scope.parts)
        scope.count = sum(part.count for part in scope.parts)
    return root


def _shortened(scope: Scope) -> Scope:
    """``scope``, or its only part under both names."""
    if len(scope.parts) != 1:
        return scope
    part = scope.parts[0]
    part.label = f"{scope.label}/{part.label}"
    return part


def without_small(root: Scope, most: int) -> Scope:
    """The tree with its ``most`` largest scopes; the others of a scope are one part of it.

    The sums stay exact. At most twice as many scopes are left.
    """
    ranked: list[tuple[int, int, Scope]] = []
    level, depth = [root], 0
    while level:
        ranked += [(scope.bytes, depth, scope) for scope in level]
        level, depth = [part for scope in level for part in scope.parts], depth + 1
    # Equal sizes: the outer one first, so that what is chosen hangs together.
    ranked.sort(key=lambda entry: (-entry[0], entry[1], entry[2].path))
    chosen = {id(scope) for _, _, scope in ranked[:most]}
    return _pruned(root, chosen)


def _pruned(root: Scope, chosen: set[int]) -> Scope:
    copy = Scope(root.label, root.path, root.bytes, root.count, [], root.buffers)
    waiting = [(root, copy)]
    while waiting:
        scope, drawn = waiting.pop()
        small = [part for part in scope.parts if id(part) not in chosen]
        for part in scope.parts:
            if id(part) in chosen or len(small) == 1:
                new = Scope(part.label, part.path, part.bytes, part.count, [], part.buffers)
                drawn.parts.append(new)
                if id(part) in chosen:
                    waiting.append((part, new))
        if len(small) > 1:
            drawn.parts.append(
                Scope(
                    f"({len(small):,} smaller)",
                    scope.path,
                    sum(part.bytes for part in small),
                    sum(part.count for part in small),
                    merged=len(small),
                )
            )
    return copy


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
    result = False
    for frames, size, count in stacks:
        if size <= 0:
            continue
        result = True
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
    if not result:
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
