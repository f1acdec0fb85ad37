"""What is in memory at a moment as a tree of scopes, with its small parts put together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from peakline.memory.peak import BEFORE_PROFILE, RESERVED, UNATTRIBUTED, PeakBuffer

SPECIAL = (BEFORE_PROFILE, UNATTRIBUTED, RESERVED)
NO_OP = "(no op)"
_DEEPEST = 64
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
    pieces = {op: [op] if op in SPECIAL else op.split("/", _DEEPEST) for op in by_op}
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
