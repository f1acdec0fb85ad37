"""One message type, one projection of it, and how to decode it: what the random tests share."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

from google.protobuf.descriptor import Descriptor
from tests.wire import projections
from tests.wire.parts import decode_module, joined
from tests.wire.reference import Projection, Row
from tests.wire.wirebytes import ArbitraryWriter
from tests.wire.zoo import ZOO

from peakline import schema
from peakline.wire import Buffer, Damage, Plan, Spans, WireTable, decode

MESSAGES = [ZOO] + [
    schema.descriptor(f"tensorflow.{name}")
    for name in """
    profiler.XSpace profiler.XPlane profiler.MemoryProfile GraphDef StepStats RunMetadata
    MetaGraphDef SavedModel OpDef TensorProto AttrValue Event StructuredValue FullTypeDef
    MemoryLogStep MemoryLogTensorAllocation MemoryLogTensorDeallocation MemoryLogTensorOutput
    MemoryLogRawAllocation MemoryLogRawDeallocation
    tfprof.ProfileProto tfprof.MultiGraphNodeProto tfprof.AdviceProto
    """.split()
]
_PIECES = (1, 2, 3, 7, 16, 30, 64)
_MOST_PIECES = (5, 12, 40)


class Case:
    """A projection with its containers and filters; ``rng`` also decides how bytes are cut."""

    def __init__(
        self,
        rng: Random,
        message: Descriptor,
        paths: list[str],
        containers: tuple[str, ...],
        keep: dict[str, list[int]],
    ) -> None:
        self.rng, self.message, self.paths = rng, message, paths
        self.containers, self.keep = containers, keep
        self.projection = Projection(message, paths)
        self.plan = Plan(message, paths, containers=containers, keep=keep)

    @classmethod
    def arbitrary(cls, rng: Random) -> Case:
        """Any message type, seen in any way."""
        message = ZOO if rng.random() < 0.3 else rng.choice(MESSAGES)
        paths = projections.paths(rng, message)
        projection = Projection(message, paths)
        containers = projections.containers(rng, projection)
        keep = projections.filters(rng, projection, containers)
        return cls(rng, message, paths, containers, keep)

    def data(self) -> bytes:
        """Legal bytes of the message."""
        return ArbitraryWriter(self.rng).message(self.message, self.projection.root)

    def observed(self, tables: dict[str, WireTable], buffer: Buffer) -> list[Row]:
        """Decoded tables as trees."""
        return self.projection.observed(tables, buffer, self.keep)

    def decode_every_way(
        self, buffer: Buffer, spans: Spans | None = None
    ) -> tuple[list[Row], Damage]:
        """Decode whole, in pieces and as a stream; all must say the same, damage included."""
        whole = decode(buffer, self.plan, spans)
        rows = self.observed(whole.tables, buffer)
        with patch.object(decode_module, "PIECE_BYTES", self._piece_bytes(buffer)):
            cut = decode(buffer, self.plan, spans)
        assert cut.damage == whole.damage
        assert self.observed(cut.tables, buffer) == rows
        pieces = self._piece_bytes(buffer)
        tables, damage = joined(buffer, self.plan, self.projection, self.containers, pieces, spans)
        assert damage == whole.damage
        assert self.projection.observed(tables, buffer, self.keep, streamed=True) == rows
        return rows, whole.damage

    def _piece_bytes(self, buffer: Buffer) -> int:
        """A few bytes; of a larger buffer more, which is what the time goes into."""
        return max(self.rng.choice(_PIECES), len(buffer) // self.rng.choice(_MOST_PIECES))
