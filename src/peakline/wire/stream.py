"""`stream`: a buffer piece by piece, never holding more than a few pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.wire.assemble import assemble
from peakline.wire.pieces import PIECE_BYTES, Walk
from peakline.wire.plan import Plan
from peakline.wire.tables import Buffer, Damage, Spans, WireTable
from peakline.wire.walker import as_damage


@dataclass(frozen=True, eq=False)
class Part:
    """One piece of a stream: its atomic tables (rows numbered from 0 within the piece).

    The columns are valid until the next piece is read. ``position`` is the offset up to
    which the buffer has been read.
    """

    tables: dict[str, WireTable]
    damage: Damage
    position: int


def stream(
    buf: Buffer, plan: Plan, spans: Spans | None = None, piece_bytes: int = PIECE_BYTES
) -> Iterator[Part]:
    """Decode piece by piece, in order, never holding more than a few pieces.

    Rows of atomic messages are numbered within their piece; ``parent`` of a row directly below a
    container is that container's row in the whole file. Containers' tables grow from part to
    part; the rows of those still open are not filled in yet, and a row of a oneof message that
    was replaced stays, with parent -1. The last part has no atoms. Ends at the deadline, as
    `check_deadline`.
    """
    walk = Walk(buf, plan, spans, piece_bytes)
    skeleton = walk.skeleton
    for one in walk.pieces():
        rows = np.where(walk.is_atom, one.rows, skeleton.state.rows)
        tables = assemble(plan, [skeleton.store, one.store], rows, one.dtypes, whole=False)
        yield Part(tables, one.damage, min(one.piece.stop[1], buf.size))
    rows = np.where(walk.is_atom, 0, skeleton.state.rows)
    tables = assemble(plan, [skeleton.store, walk.nothing()], rows, plan.types.piece, whole=False)
    yield Part(tables, as_damage(skeleton.damage), int(buf.size))
