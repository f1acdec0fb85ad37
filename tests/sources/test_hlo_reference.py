"""Compiled programs: the tables are those that protobuf's own messages give, of samples and of
programs that no compiler writes.
"""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.hlo import Reference
from tests.reference.hlo_mutations import mutated

import peakline
from peakline.schema import HloProto
from peakline.tables.program_tables import PROGRAM_TABLES

DATA = Path(__file__).parents[1] / "data"
DUMPED = sorted(DATA.rglob("*.hlo.pb"))
SPACES = sorted((DATA / "sessions").glob("jax*/**/*.xplane.pb*"))
SMALL = sorted(DUMPED, key=lambda path: path.stat().st_size)[:10]
ROWS_OF = {
    "computation_id": "hlo_computations",
    "root_id": "hlo_instructions",
    "instruction_id": "hlo_instructions",
    "operand_id": "hlo_instructions",
    "buffer_id": "hlo_buffers",
}
KINDS = ("hlo_reference", "hlo_heap")


def expected(protos):
    """The rows of all programs, numbered through, and what was lost."""
    tables, losses = {table: [] for table in PROGRAM_TABLES}, Counter()
    stacks = 0
    for number, proto in enumerate(protos):
        one = Reference(proto)
        losses += one.losses
        first = {table: len(tables[table]) for table in PROGRAM_TABLES}
        assert one.tables.keys() == PROGRAM_TABLES
        for table, rows in one.tables.items():
            for row in rows:
                for name in row.keys() & ROWS_OF.keys():
                    row[name] = None if row[name] is None else row[name] + first[ROWS_OF[name]]
                if row.get("stack_id") is not None:
                    row["stack_id"] += stacks
                tables[table].append(row | ({"module_id": number} if "module_id" in row else {}))
        stacks += len(proto.hlo_module.stack_frame_index.stack_frames)
    return tables, losses


def check(path, protos, order=None):
    """Compare all tables of a file; ``order`` is that in which they are read."""
    tables, losses = expected(protos)
    with peakline.open(path) as profile:
        for table in order or sorted(tables):
            found = profile.table(table).to_pylist()
            assert len(found) == len(tables[table]), table
            for row, wanted in zip(found, tables[table], strict=True):
                assert {name: row[name] for name in wanted} == wanted, table
        counts = Counter({one.kind: one.count for one in profile.warnings})
        assert {kind: counts[kind] for kind in KINDS} == {kind: losses[kind] for kind in KINDS}


@pytest.mark.parametrize("path", DUMPED, ids=lambda path: path.name)
def test_programs_that_xla_dumped(path):
    check(path, [HloProto.FromString(path.read_bytes())])


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.name)
def test_programs_of_a_profile(path):
    with peakline.open(path) as profile:
        programs = profile.programs()
        protos = [HloProto.FromString(bytes(programs.data(n))) for n in range(len(programs))]
    assert len(protos) > 5
    check(path, protos)


def write(folder, proto):
    path = folder / "program.hlo.pb"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_programs_that_no_compiler_writes(folder, seed):
    rng = Random(seed)
    made = mutated(rng, HloProto.FromString(rng.choice(SMALL).read_bytes()), rng.randrange(1, 12))
    order = sorted(PROGRAM_TABLES)
    rng.shuffle(order)
    check(write(folder, made), [made], order)
