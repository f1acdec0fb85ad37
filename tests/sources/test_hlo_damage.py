"""What is damaged in a program is counted, whichever table is read first."""

from itertools import permutations
from pathlib import Path

from tests.wire.wirebytes import len_field

import peakline
from peakline.schema import HloProto

_SAMPLE = next((Path(__file__).parents[1] / "data/hlo").glob("*jit_donate_sgd*.hlo.pb"))
_METADATA, _WINDOW = 7, 15
_BROKEN = b"\x0a\x7f"
"""A text that is longer than what it stands in."""


def program(*broken):
    """A sample in which a field of some of the first instructions is broken, each by its number."""
    proto = HloProto.FromString(_SAMPLE.read_bytes())
    numbers = iter(broken)
    computations = []
    for computation in proto.hlo_module.computations:
        made = []
        for one in computation.instructions:
            field = next(numbers, None)
            more = b"" if field is None else len_field(field, _BROKEN)
            made.append(len_field(2, one.SerializeToString() + more))
        computation.ClearField("instructions")
        computations.append(len_field(3, computation.SerializeToString() + b"".join(made)))
    proto.hlo_module.ClearField("computations")
    module = proto.hlo_module.SerializeToString() + b"".join(computations)
    proto.ClearField("hlo_module")
    return len_field(1, module) + proto.SerializeToString()


def test_damage_that_only_some_tables_meet_is_counted_in_any_order(tmp_path):
    # Metadata is read for every table, a window only for categories.
    path = tmp_path / "odd.hlo_proto.pb"
    path.write_bytes(program(_METADATA, _WINDOW))
    with peakline.open(_SAMPLE) as profile:
        rows = profile.columns("hlo_instructions").rows
    found = []
    for tables in permutations(["hlo_modules", "hlo_instructions", "hlo_computations"]):
        with peakline.open(path) as profile:
            counts = {table: profile.columns(table).rows for table in tables}
            found.append({warning.kind: warning.count for warning in profile.warnings})
        assert counts["hlo_instructions"] == rows - 1
    assert found == [{"damaged": 2, "hlo_damaged": 1}] * len(found)
