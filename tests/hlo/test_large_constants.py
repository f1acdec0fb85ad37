"""A program with a constant of more than protobuf's messages can hold."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from peakline.schema import HloComputationProto, HloInstructionProto, HloProto
from peakline.schema import shape as shape_of

PROGRAM = (
    Path(__file__).parent.parent
    / "data/hlo/module_0012.jit_chunk_attention.cpu_after_optimizations.hlo.pb"
)
VALUE = 2**31 + 2**20
"""Bytes of the constant; in the file they take no room."""

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))
from peakline.cli.main import app
app(sys.argv[1:])
"""


def head(message, field, size):
    """Tag and length of a field, as protobuf writes them."""
    numbers = {one.name: one.number for one in shape_of(message).fields_by_number.values()}
    found = bytearray([numbers[field] << 3 | 2])
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    return bytes([*found, size])


def around(message, field, inner, size, own=b""):
    """Message bytes that end with a field of ``size`` bytes, which begins with ``inner``; their
    size.
    """
    begin = own + head(message, field, size) + inner
    return begin, len(begin) - len(inner) + size


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A real program, and beside it a computation of one constant."""
    real = HloProto.FromString(PROGRAM.read_bytes())
    constant = HloInstructionProto(name="huge", opcode="constant", id=1 << 40)
    constant.shape.element_type = 11
    constant.shape.dimensions.append(VALUE // 4)
    begin, size = around("xla.LiteralProto", "f32s", b"", VALUE)
    for message, field, own in (
        ("xla.HloInstructionProto", "literal", constant),
        ("xla.HloComputationProto", "instructions", HloComputationProto(name="huge", id=1 << 8)),
        ("xla.HloModuleProto", "computations", real.hlo_module),
        ("xla.HloProto", "hlo_module", HloProto()),
    ):
        begin, size = around(message, field, begin, size, own.SerializeToString())
    path = tmp_path_factory.mktemp("huge") / "huge.hlo.pb"
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(size)
        file.seek(size)
        real.ClearField("hlo_module")
        file.write(real.SerializeToString())
    return path


@pytest.mark.skipif(os.name == "nt", reason="no limit of a process's memory")
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["programs"], "8.0 MiB"),
        (["tool", "memory_viewer"], '"peakHeapMib":9.5'),
        (["tool", "hlo_stats"], "no_instructions"),
        (["tool", "graph_viewer", "-p", "node_name=huge"], "huge"),
        (["sql", "select name, bytes from hlo_instructions where name = 'huge'"], f"{VALUE}"),
    ],
    ids=lambda value: value[-1][:20] if isinstance(value, list) else None,
)
def test_it_is_read_in_a_gigabyte(program, words, shown):
    path = [words[0], program, *words[1:]] if words[0] == "sql" else [*words, program]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout + done.stderr
