"""Mutation fuzzing of the decoder and of the readers above it.

Mutant ``n`` of a seed is always the same, so that a failure is told by two numbers.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError
from tests.wire.cases import Case
from tests.wire.mutations import mutate, sized_fields
from tests.wire.parts import Fence, uninitialised_memory_shows
from tests.wire.slices import read_sample, slice_of

from peakline import schema
from peakline.errors import PeaklineError
from peakline.formats import open_reader
from peakline.tables.reader import Warnings
from peakline.tables.tables import check_columns
from peakline.wire import Buffer, Damage
from reference.random_xspace import random_xspace

_SPACE = schema.descriptor("tensorflow.profiler.XSpace")

_VIEWS: list[tuple[list[str], tuple[str, ...], dict[str, list[int]]]] = [
    (["**"], ("", "planes", "planes.lines"), {}),
    (["**"], ("",), {}),
    (["planes.lines", "planes.name", "planes.stats.value", "planes.event_metadata.value.name",
      "planes.event_metadata.key", "hostnames"], ("", "planes"), {}),
    (["planes.lines.events.metadata_id", "planes.lines.events.data", "planes.lines.timestamp_ns",
      "planes.lines.events.stats.value", "planes.lines.events.stats.metadata_id"],
     ("", "planes", "planes.lines"),
     {"planes.lines.events.metadata_id": [1, 2, 3, 5, 8, 13, 70000],
      "planes.lines.events.stats.metadata_id": [*range(3, 12)]}),
    (["planes.lines.events.@span", "planes.lines.events.stats", "planes.lines.name?"],
     ("", "planes", "planes.lines"), {}),
]  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """Damaged bytes and, for the decoder, the projection they are seen through."""

    data: bytes
    case: Case | None
    """None: read as a file, through all tables."""

    def describe(self) -> dict[str, object]:
        """What is needed to decode it again, for a report."""
        if self.case is None:
            return {"reader": True}
        return {
            "message": self.case.message.full_name,
            "paths": self.case.paths,
            "containers": self.case.containers,
            "keep": self.case.keep,
        }


class Fuzzer:
    """Makes and checks mutants of real profiles, of made-up ones and of arbitrary messages."""

    def __init__(self, seed: int, sessions: Path, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self._fence = Fence()
        samples = [
            read_sample(p) for p in sorted(sessions.glob("*/plugins/profile/*/*.xplane.pb*"))
        ]
        made = [random_xspace(n).SerializeToString(deterministic=True) for n in range(40)]
        small = [slice_of(data, 6, 60) for data in samples] + [m for m in made if len(m) < 6000]
        self._small = [(data, sized_fields(data, _SPACE)) for data in small]
        files = [slice_of(data, 60) for data in samples] + made
        self._files = [(data, sized_fields(data, _SPACE)) for data in files]

    def mutant(self, n: int, *, reader: bool) -> Mutant:
        """Mutant number ``n``, for the readers or for the decoder."""
        rng = random.Random(f"{self.seed} {n}")
        if reader:
            return Mutant(mutate(rng, *rng.choice(self._files)), None)
        if rng.random() < 0.5:
            data, sized = rng.choice(self._small)
            paths, containers, keep = rng.choice(_VIEWS)
            return Mutant(mutate(rng, data, sized), Case(rng, _SPACE, paths, containers, keep))
        case = Case.arbitrary(rng)
        data = case.data()
        return Mutant(mutate(rng, data, sized_fields(data, case.message)), case)

    def check(self, mutant: Mutant) -> None:
        """Raise when the mutant is not answered as it must be."""
        if mutant.case is not None:
            with uninitialised_memory_shows():
                check_wire(mutant.case, self._fence.hold(mutant.data), mutant.data)
        else:
            path = self.folder / "mutant.xplane.pb"
            path.unlink(missing_ok=True)
            path.write_bytes(mutant.data)
            check_reader(path)


def check_wire(case: Case, buffer: Buffer, data: bytes) -> None:
    """No exception, the same rows every way, and exactly what protobuf reads where it reads any."""
    rows, damage = case.decode_every_way(buffer)
    if damage.groups:
        # protobuf skips unknown groups, the decoder refuses them.
        return
    try:
        expected = case.projection.expected(data, keep=case.keep)
    except DecodeError:
        assert damage or _has_long_length(data), "damage that nobody was told of"
        return
    assert damage == Damage()
    assert rows == expected


def _has_long_length(data: bytes) -> bool:
    """Whether there may be a length of more than 5 bytes, which protobuf alone refuses."""
    run = 0
    for byte in data:
        run = run + 1 if byte >= 0x80 else 0
        if run >= 5:
            return True
    return False


def check_reader(path: Path) -> None:
    """Every table can be read and is well formed, or there is one of our own errors."""
    try:
        reader = open_reader(str(path))
    except PeaklineError:
        return
    try:
        for table in sorted(reader.tables):
            try:
                check_columns(table, reader.read(table, Warnings()))
            except PeaklineError:
                continue
        reader.duration_ps()
    finally:
        reader.close()
