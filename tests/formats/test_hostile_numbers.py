"""Numbers that no computer counts with, wherever a text of a file has one: an answer, or one of
our own errors.
"""

import re
from contextlib import suppress
from functools import reduce
from itertools import islice
from operator import getitem
from pathlib import Path
from random import Random

import pytest
from tests.each_row import each_row
from tests.formats.format_checks import content_or_error
from tests.formats.format_samples import ALL, BY_NAME
from tests.reference.xspace_builder import SpaceBuilder, Uint

import peakline
from peakline.errors import PeaklineError, UsageError
from peakline.graph.scopes.model import bytes_of_shape
from peakline.hlo.row_costs import turns_of
from peakline.tools import available_tools

DATA = Path(__file__).parent.parent / "data"
NUMBERS = (
    b"9" * 19, b"9" * 20, b"9" * 310, b"9" * 5000, b"1e400", b"-0", b"NaN", b"-" + b"9" * 20,
    b"18446744073709551616", b"9223372036854775808", b"Infinity", b"0x" + b"f" * 40,
    "\u00b2".encode(), "\u0663".encode(), b"1e-400", b"0." + b"0" * 400 + b"1",
)  # fmt: skip
_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|(?<=[a-z_#\[,x(<@:$])\d+")
_AROUND = 14
TEXTS = {sample.name: sample.file for sample in ALL if sample.kind != "wire"} | {
    path.name: path.read_bytes()
    for folder in ("xla_dump", "xla_live_range")
    for path in sorted((DATA / folder).glob("module_000[06]*.txt"))
}
TEXTS |= {"odd.hlo.txt": (Path(__file__).parent / "hlo_odd.txt").read_bytes()}


def ask(path):
    """All tables, and for what can be read the tools, unless they say why not."""
    answer, error = content_or_error(path)
    if answer is None:
        assert str(path) in error
        return
    with peakline.open(path) as profile:
        for tool in available_tools(profile):
            with suppress(UsageError):
                profile.tool(tool)


def places(data):
    """Where a number stands, once for each that looks the same around it."""
    seen = {}
    for match in _NUMBER.finditer(data):
        begin, end = match.span()
        around = data[max(begin - _AROUND, 0) : begin], data[end : end + 5]
        seen.setdefault(tuple(re.sub(rb"\d+", b"#", text) for text in around), (begin, end))
    return list(seen.values())


def cases(name):
    """The text with one number in one place, for all of both."""
    data = TEXTS[name]
    chosen = places(data)
    Random(1).shuffle(chosen)
    for turn in range(len(NUMBERS)):
        for place, (begin, end) in enumerate(chosen):
            number = NUMBERS[(place + turn) % len(NUMBERS)]
            yield data[:begin] + number + data[end:]


@pytest.mark.parametrize("most", [
    1, pytest.param(40, marks=pytest.mark.nightly), pytest.param(300, marks=pytest.mark.soak),
])  # fmt: skip
def test_a_number_in_a_text(write, most):
    for name in TEXTS:
        for number, data in enumerate(islice(cases(name), most)):
            try:
                ask(write(data, name))
            except Exception as error:
                raise AssertionError(f"{name}, {number}") from error


@each_row("number", NUMBERS)
@each_row("place", [b"413", b"40B;", b"192", b"5;"])
def test_a_number_in_a_report_of_memory_usage(write, number, place):
    name = "module_0000.jit_flow.cpu_after_optimizations-memory-usage-report.txt"
    digits = re.search(rb"\d+", place)[0]
    data = TEXTS[name].replace(place, place.replace(digits, number), 1)
    assert data != TEXTS[name]
    content_or_error(write(data, name))


@each_row("number", [text.decode() for text in NUMBERS if len(text) < 60])
@each_row("form", ["module_{}.f.cpu_after_optimizations.hlo.pb", "f({}).hlo_proto.pb"])
def test_a_number_in_the_name_of_a_dumped_program(tmp_path, number, form):
    folder = tmp_path / str(NUMBERS.index(number.encode())) / form[:2]
    folder.mkdir(parents=True)
    source = DATA / "xla_dump/module_0000.jit_flow.cpu_after_optimizations.hlo.pb"
    (folder / form.format(number)).write_bytes(source.read_bytes())
    try:
        with peakline.open(folder) as profile:
            assert profile.table("hlo_modules").num_rows == 1
    except PeaklineError:
        assert form.startswith("module_")


def space_of(stat, value):
    """A step of a host and of a GPU with one stat of that name wherever it may stand."""
    builder = SpaceBuilder()
    for plane in (builder.host({stat: value}), builder.plane("/device:GPU:0", {stat: value})):
        line = plane.line("python")
        for step in (1, 2):
            own = {"_r": 1, "step_num": step, "hlo_op": "a", "program_id": Uint(3), "run_id": step}
            line.event("train", 1000 * step, 900, own | {stat: value})
            line.event("Iterator::Root", 1000 * step + 10, 100, {stat: value})
    return builder.space.SerializeToString()


@each_row("stat, value", [
    ("device_ordinal", -(2**63)), ("device_ordinal", "9" * 310), ("_r", "9" * 20), ("_r", "1e400"),
    ("compute_cap_major", float("inf")), ("compute_cap_major", "nan"), ("core_count", "1e400"),
    ("Input Dims", "[[" * 9000), ("Input Dims", "[[NaN]]"),
])  # fmt: skip
def test_a_number_in_a_stat(write, stat, value):
    path = write(space_of(stat, value), "a.xplane.pb")
    with peakline.open(path) as profile:
        for table in profile.tables:
            profile.table(table)
        for tool in available_tools(profile):
            profile.tool(tool)


@each_row("text, size", [
    ("(f32[2,?], s32[])", 4), ("(f\u00b2[2])", 0), ("(f" + "9" * 5000 + "[2])", 0),
    ("(f32[" + "9" * 310 + "])", 0), ("(f32[-4])", 0), ("(f32[<=8,2])", 64),
])  # fmt: skip
def test_the_bytes_of_a_tuple(text, size):
    assert bytes_of_shape(text) == size


def test_a_loop_that_turns_for_ever():
    class Proto:
        backend_config = b'{"known_trip_count":{"n":1e999}}'

    assert turns_of(Proto()) is None


@each_row("value", [2**63 - 1, 2**63, 2**64, 10**9000, -(2**63), 1e308, float("nan"), "9" * 310])
@each_row("place", [
    ("segments", 0, "total_size"), ("segments", 0, "blocks", 0, "size"),
    ("device_traces", 0, 0, "size"), ("device_traces", 0, 1, "time_us"),
])  # fmt: skip
def test_a_number_in_a_pickle(write, place, value):
    sample = BY_NAME["snapshot4.pickle"]
    tree = sample.load(sample.data)
    *above, last = place
    reduce(getitem, above, tree)[last] = value
    ask(write(sample.dump(tree), sample.name))
