"""Bad input of every format: one clear line and an exit code, or what is whole and a warning."""

import os
import pickle
import re
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from google.protobuf import text_format
from tests.each_row import each_row
from tests.formats.format_checks import (
    ask_everything,
    content,
    content_or_error,
    error_of,
    run_verb,
    verbs,
)
from tests.formats.format_damage import damaged, dice
from tests.formats.format_samples import ALL, BY_NAME, ONE_OF_EACH, Sample, every
from tests.hanging import no_hang
from tests.wire.wirebytes import len_field, read_varint, tag, varint

from peakline import schema
from peakline.formats.common.format import message_names
from peakline.formats.run_metadata.texts import label_parts

_LEVELS = 100_000


# Whole files, and damaged in any way.


@every(ONE_OF_EACH.values())
def test_a_whole_file_answers_every_verb(write, made):
    path = write(made.file, made.name)
    assert content(path)[0] == made.format
    for words in verbs(path):
        code, text = run_verb(words)
        # A graph that breaks a rule is 1, a table or a trace that the format lacks 3.
        assert code in {0, 1, 3}, text


def _ask_mutants(write, numbers):
    for n in numbers:
        rng = dice(2026, n)
        sample = rng.choice(ALL)
        path = write(damaged(rng, sample), f"{n}-{sample.name}")
        try:
            ask_everything(path, rng)
        except Exception as error:
            raise AssertionError(f"mutant {n}") from error


@pytest.mark.parametrize(
    "numbers", [(*range(12), 930), pytest.param(range(12, 40), marks=pytest.mark.nightly)]
)
def test_mutants_of_every_format(write, numbers):
    _ask_mutants(write, numbers)


@pytest.mark.nightly
def test_many_mutants_of_every_format(write):
    _ask_mutants(write, range(40, 1000))


def test_mutants_are_repeatable():
    made = [damaged(dice(1, n), ALL[n % len(ALL)]) for n in range(60)]
    assert made == [damaged(dice(1, n), ALL[n % len(ALL)]) for n in range(60)]
    assert sum(one == ALL[n % len(ALL)].file for n, one in enumerate(made)) < 10


# Truncated.


def _seams(sample: Sample) -> set[int]:
    """Where a file can be cut so that nobody can tell: between two fields or records."""
    data, at, result = sample.file, 0, {0}
    if sample.format == "tfevents":
        while at < len(data):
            at += 16 + int.from_bytes(data[at : at + 8], "little")
            result.add(at)
    elif sample.kind == "wire":
        while at < len(data):
            key, at = read_varint(data, at)
            size, at = read_varint(data, at)
            at += size if key & 7 == 2 else 0
            result.add(at)
    elif data.startswith(b"HloModule"):
        result |= {n for n in range(len(data)) if not data[n:].strip()}
    elif data.startswith(b"["):
        # The end of a trace that is an array need not be there, nor need the comma.
        result |= {n for n in range(len(data)) if data[:n].rstrip(b"\n ,").endswith(b"\n }")}
    return result


def _reads_as_text(sample: Sample, data: bytes) -> bool:
    message = schema.message(message_names()[sample.format])()
    try:
        text_format.Parse(data, message, descriptor_pool=schema.POOL)
    except text_format.ParseError:
        return False
    return True


@pytest.mark.parametrize("some", [2, pytest.param(6, marks=pytest.mark.nightly)])
@every([s for s in ALL if not s.name.endswith(".log")])
def test_a_cut_is_an_error_or_a_warning(write, made, some):
    form, whole, before = content(write(made.file, made.name))
    seams, answered = _seams(made), 0
    size = len(made.file)
    cuts = {1, 2, size - 1, size - 2, *Random(made.name).sample(range(3, size - 2), some)}
    for cut in sorted(cuts - seams):
        path = write(made.file[:cut], made.name)
        answer, error = content_or_error(path)
        if answer is None:
            assert str(path) in error
            continue
        result, rows, after = answer
        if result != form:
            # A few bytes are whole messages of many kinds.
            assert cut < 20
            continue
        answered += 1
        if made.name.endswith(".pbtxt") and _reads_as_text(made, made.file[:cut]):
            continue
        assert before != after, f"a cut at {cut} of {size} that nobody was told of"
        for table, chosen in rows.items():
            assert len(chosen) <= len(whole[table])
    # Binary messages, records and traces are read as far as they go.
    assert answered > some // 3 or not (made.kind == "wire" or "trace" in made.name)


@each_row("name", ["tf1_control_flow.log", "session_default_allocator.log"])
def test_a_log_whose_lines_are_cut(write, name):
    lines = BY_NAME[name].data.splitlines(keepends=True)
    held = [n for n, line in enumerate(lines) if b"__LOG_MEMORY__" in line]
    _, whole, _ = content(write(b"".join(lines)))
    for cut in held[3:6]:
        half = lines[cut][: lines[cut].index(b"__LOG_MEMORY__") + 60]
        # The process ended here; or another one wrote on.
        _, rows, result = content(write(b"".join(lines[:cut]) + half))
        assert result["cut_lines"] == 1
        assert len(rows["log_records"]) == held.index(cut)
        _, rows, result = content(write(b"".join([*lines[:cut], half, *lines[cut + 1 :]])))
        assert result["cut_lines"] == 1
        assert len(rows["log_records"]) in {len(held) - 1, len(held) - 2}
        expected = [row["op"] for row in whole["log_records"]]
        assert [row["op"] for row in rows["log_records"]][: held.index(cut)] == (
            expected[: held.index(cut)]
        )


def test_a_report_whose_end_is_missing(write):
    data = BY_NAME["tf_bfc_oom.log"].data
    _, whole, _ = content(write(data))
    begin, end = data.index(b"ran out of memory"), data.rindex(b"Stats:")
    for cut in range(begin + 400, end, (end - begin) // 6):
        _, rows, result = content(write(data[:cut]))
        assert "truncated_oom_report" in result
        assert len(rows["blocks"]) <= len(whole["blocks"])


def test_a_trace_is_kept_up_to_the_cut(write):
    data = BY_NAME["tiny_trace.json"].data
    starts = [n for n in range(len(data)) if data.startswith(b"\n {", n)]
    middles = [(start + end) // 2 for start, end in pairwise(starts)]
    assert "no event is whole" in error_of(write(data[: middles[0]]))
    result = []
    for cut in middles[1:]:
        path = write(data[:cut])
        _, rows, answer = content(path)
        assert answer["truncated"] == 1
        assert run_verb(["memory", "--strict", str(path)])[0] == 3
        result.append((len(rows["events"]), len(rows["flows"]), len(rows["counters"])))
    assert result == [
        (0, 0, 0), (0, 0, 0), (1, 0, 0), (2, 0, 0), (2, 0, 0), (3, 0, 0), (3, 0, 0), (3, 1, 0),
        (3, 2, 0), (3, 2, 2), (4, 2, 2),
    ][: len(result)]  # fmt: skip


# Pickles that want more than containers.


class _Runs:
    def __reduce__(self):
        return (os.system, ("touch was-here",))


@each_row("protocol", range(6))
def test_a_pickle_that_runs_code(write, monkeypatch, tmp_path, protocol):
    monkeypatch.chdir(tmp_path)
    path = write(pickle.dumps({"segments": [], "device_traces": [_Runs()]}, protocol))
    error = error_of(path)
    assert f"{path}: the pickle needs {os.system.__module__}.system: refused" in error
    assert not Path("was-here").exists()


# Graphs that go round.


def test_a_graph_with_a_cycle(write):
    graph = schema.GraphDef()
    for name, source in (("a", "c"), ("b", "a"), ("c", "b")):
        graph.node.add(name=name, op="Identity", input=[source]).attr["T"].type = 1
    graph.versions.producer = 2474
    path = write(graph.SerializeToString())
    code, text = run_verb(["graph", "--check", str(path)])
    assert code == 1
    assert text.startswith(f"peakline: {path}: ")
    assert content(path)[1]["edges"]
    for words in verbs(path):
        run_verb(words)


# Lengths that are not true, and nesting that nobody writes.


@every([s for s in ALL if s.kind == "wire" and s.format != "tfevents"])
@each_row("length", [2**31 - 1, 2**63 - 1, 2**64 - 1])
def test_a_length_beyond_the_end(write, made, length):
    expected = content(write(made.data))
    field = next(f for f in schema.descriptor(made.message).fields if f.type == f.TYPE_MESSAGE)
    form, rows, result = content(write(made.data + tag(field.number, 2) + varint(length)))
    assert form == expected[0]
    for table, chosen in rows.items():
        # What the field would hold may be there, without anything in it.
        assert len(chosen) - len(expected[1][table]) in {0, 1}
    assert {"truncated", "damaged"} & result.keys()


@every([s for s in ALL if s.kind == "wire" and s.format != "tfevents"])
@each_row("end", [b"\x0f", b"\xff" * 11, b"\xf8", b"\x0b\x01"])
def test_what_is_broken_behind_the_content_is_counted(write, made, end):
    """Also where the message around it is walked by itself: no kind of field, number or group."""
    result, error = content_or_error(write(made.data + end))
    if result is None:
        # Nothing in its first bytes is a message that is known.
        assert "unknown content" in error
        return
    assert {"damaged", "truncated"} & result[2].keys()


def _nested(*numbers: int) -> bytes:
    """Fields of these numbers in one another, over and over."""
    parts, size = [], 0
    for level in range(_LEVELS):
        head = tag(numbers[level % len(numbers)], 2) + varint(size)
        parts.append(head)
        size += len(head)
    return b"".join(reversed(parts))


_DEEP = {
    "graph": lambda: len_field(1, b"\x0a\x01b" + len_field(5, _nested(2, 2, 10)[6:])),
    "step stats": lambda: len_field(1, b"\x0a\x06/cpu:0" + len_field(2, _nested(2, 6))),
    "fields": lambda: _nested(1),
    "text": lambda: b"node { attr { value { func { " * _LEVELS,
    "unknown text": lambda: b"node { unknown " + b"{ x " * _LEVELS + b"}" * (_LEVELS + 1),
    "JSON": lambda: b'{"node":' + b"[" * _LEVELS,
    "other JSON": lambda: b'{"a":' * _LEVELS + b"1" + b"}" * _LEVELS,
    "trace": lambda: b'{"traceEvents":' + b"[" * _LEVELS + b"]" * _LEVELS + b"}",
    "event": lambda: b'[{"ph":"X","args":' + b"[" * _LEVELS + b"]" * _LEVELS + b"}]",
    "log": lambda: b"__LOG_MEMORY__ MemoryLogTensorAllocation { " + b"tensor { " * _LEVELS,
    "lists": lambda: b"\x80\x02" + b"]" * _LEVELS + b"a" * (_LEVELS - 1) + b".",
    "marks": lambda: b"\x80\x02" + b"(" * _LEVELS,
    "old pickle": lambda: b"(lp0\n" + b"(lp1\n" * _LEVELS,
}


@each_row("kind", _DEEP)
def test_deep_nesting(write, kind):
    path = write(_DEEP[kind]())
    for words in verbs(path):
        with no_hang():
            run_verb(words)


# Text that a search could take long over.


def test_labels_are_what_the_pattern_of_the_timeline_finds():
    pattern, rng = re.compile(r"(.*) = (.*)\((.*)\)"), Random(1)
    for _ in range(5000):
        label = "".join(rng.choices(["(", ")", " = ", " ", "=", "a", ", ", "\n"], k=9))
        result = pattern.match(label)
        inputs = result and (result[3].split(", ") if result[3] else [])
        assert label_parts(label) == (result and (result[2], inputs))


@each_row("label", [" = " * 50_000 + "(" * 50_000, " = (" * 50_000 + ")\n)"])
def test_strange_labels_do_not_take_the_cube_of_their_length(label):
    with no_hang():
        label_parts(label)
