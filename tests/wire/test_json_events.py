"""The scanner of JSON events, compared with `json.loads` and on damage."""

import json
import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row

from peakline.kernels import json_kinds as kinds
from peakline.kernels.json_layout import TIME_BAD, TIME_OK, TIME_RANGE
from peakline.kernels.json_numbers import floats, integers
from peakline.wire import Spans
from peakline.wire.json_events import JsonEvents, members_of

_KEYS = ("ph", "name", "ts", "dur", "args", "args.name", "args.x", "id2", "id2.local")
_examples = settings(max_examples=60)


def _value(result, key: str, row: int) -> Any:
    """What a row has under ``key``; the key itself when it has nothing."""
    kind = result.kind(key)[row]
    if kind == kinds.ABSENT:
        return key
    raw = result.spans(key).bytes(result.buffer, row).decode()
    if kind in {kinds.STRING, kinds.ESCAPED}:
        assert ("\\" in raw) == (kind == kinds.ESCAPED)
        raw = f'"{raw}"'
    value = json.loads(raw, strict=False)
    of_kind = {kinds.NULL: type(None), kinds.FALSE: bool, kinds.TRUE: bool,
               kinds.NUMBER: (int, float), kinds.STRING: str, kinds.ESCAPED: str,
               kinds.ARRAY: list, kinds.OBJECT: dict}  # fmt: skip
    assert isinstance(value, of_kind[kind])
    return value


def _scan(text: bytes, sizes=(1 << 20,), **options) -> tuple[list[dict], JsonEvents]:
    """Everything wanted of every object, and the scanner; blocks of the sizes in turn."""
    events = JsonEvents(_KEYS, times=("ts", "dur"), anchor="ph", **options)
    rows: list[dict] = []

    def take(parts):
        for result in parts:
            for row in range(result.rows):
                start, size = int(result.offset[row]), int(result.size[row])
                values = {key: _value(result, key, row) for key in _KEYS}
                rows.append({"text": text[start : start + size], **values})
            times = [result.microseconds(key) for key in ("ts", "dur")]
            for place, row in enumerate(rows[len(rows) - result.rows :]):
                row["times"] = [tuple(int(c[place]) for c in columns) for columns in times]

    at = number = 0
    while at < len(text):
        size = sizes[number % len(sizes)]
        take(events.feed(text[at : at + size]))
        at, number = at + size, number + 1
    take(events.finish())
    return rows, events


def _names(text: bytes, **options) -> list[str]:
    return [row["name"] for row in _scan(text, **options)[0]]


def _equal(left: Any, right: Any) -> bool:
    return json.dumps(left) == json.dumps(right)


def _expected(event: dict, key: str) -> Any:
    outer, dot, inner = key.partition(".")
    if not dot:
        return event.get(key, key)
    return event[outer].get(inner, key) if isinstance(event.get(outer), dict) else key


_scalar = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=12)
    | st.floats(allow_nan=True, allow_infinity=True)
)  # fmt: skip
_any = st.recursive(
    _scalar,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "x", "pH", "local", "é\n"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_key = st.sampled_from(["name", "ts", "dur", "args", "id2", "other", "tsx", ""]) | st.text(
    max_size=4
)
_event = st.dictionaries(_key, _any, max_size=6).map(lambda event: {"ph": "X", **event})
_other = st.dictionaries(st.text(max_size=3), _any, max_size=3)


@st.composite
def _documents(draw):
    events = draw(st.lists(_event, max_size=6))
    style = {
        "ensure_ascii": draw(st.booleans()),
        "indent": draw(st.sampled_from([None, 0, 2])),
        "separators": draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])),
    }
    shape = draw(st.sampled_from(["array", "object", "twice", "lines"]))
    if shape == "lines":
        text = "\n".join(json.dumps(event, ensure_ascii=style["ensure_ascii"]) for event in events)
    elif shape == "array":
        text = json.dumps(events, **style)
    else:
        before, after = draw(_other), draw(_other)
        for members in (before, after):
            members.pop("traceEvents", None)
        half = draw(st.integers(0, len(events))) if shape == "twice" else len(events)
        parts = [before, {"traceEvents": events[:half]}]
        parts += [{"traceEvents": events[half:]}] if shape == "twice" else []
        inside = [json.dumps(part, **style).strip()[1:-1].strip() for part in [*parts, after]]
        text = "{" + ",".join(part for part in inside if part) + "}"
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf", b" \n"]))
    return events, mark + text.encode("utf-8", "surrogatepass"), shape == "lines"


@_examples
@given(_documents(), st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_every_object_is_read_as_json_loads_reads_it(document, sizes):
    events, text, lines = document
    rows, source = _scan(text, sizes, lines=lines)
    assert _equal([json.loads(row["text"]) for row in rows], events)
    for row, event in zip(rows, events, strict=True):
        for key in _KEYS:
            assert _equal(row[key], _expected(event, key)), key
    assert source.damaged == (0, -1)
    assert source.cut == -1
    assert source.too_big == 0


@_examples
@given(st.lists(_event, min_size=1, max_size=4), st.data())
def test_a_trace_cut_anywhere_keeps_the_events_before_the_cut(events, data):
    pieces = [json.dumps(event).encode() for event in events]
    text = b'{"displayTimeUnit": "ns", "traceEvents": [' + b", ".join(pieces) + b"]}"
    cut = data.draw(st.integers(1, len(text) - 1))
    rows, source = _scan(text[:cut], [data.draw(st.integers(1, 30))])
    ends = [text.index(b"[") + 1]
    for piece in pieces:
        ends.append(ends[-1] + len(piece) + 2)
    whole = sum(end - 2 <= cut for end in ends[1:])
    assert [row["text"] for row in rows] == pieces[:whole]
    assert source.damaged == (0, -1)
    assert 0 <= source.cut <= cut


@each_row(
    ("text", "cut"),
    [
        (b'[{"ph":"X","name":"a"}', -1),
        (b'[{"ph":"X","name":"a"},\n', -1),
        (b'[{"ph":"X","name":"a"},]', -1),
        (b'[{"ph":"X","name":"a"},{"ph":"X","na', 23),
        (b'{"traceEvents":[{"ph":"X","name":"a"}', 37),
        (b'{"traceEvents":[{"ph":"X","name":"a"}]', 38),
        (b'{"traceEvents":[{"ph":"X","name":"a"}],"other":[1,', 39),
        (b'{"traceEvents":[{"ph":"X","name":"a"}],"other":1', 48),
    ],
)
def test_an_unfinished_trace_tells_where_it_is_cut(text, cut):
    rows, source = _scan(text)
    assert [row["name"] for row in rows] == ["a"]
    assert source.damaged == (0, -1)
    assert source.cut == cut


def _event_text(name: str) -> bytes:
    return b'{"ph":"X","name":"%s","args":{"s":[1,{"b":"}{"}]}}' % name.encode()


@each_row(
    "damaged",
    [
        b'{"ph":"X","name":"b,"args":{}}',  # a quote is lost
        b'{"ph":"X","name":"b","args":{"s":[1,{"b":1}}}',  # a bracket is lost
        b'{"ph":"X","name":"b","args":{"s":1}',  # a brace is lost
        b'{"ph":"X",{"name":"b"}}',  # a brace too much
        b'{"ph":"X","name":"b","args":{"s":[1,[2}}',  # mixed brackets
        b'{"ph":"X","name":"b","args":what}',  # no such word
        b'{"ph":"X" "name":"b"}',  # a comma is lost
        b'{"ph":"X","name","b"}',  # a colon is lost
        b'"b"',  # a string between the events
        b"[1, 2]",  # an array between the events
        b"null",  # a literal between the events
        b'{"ph":"X","name":"b","args":{"s":[',  # a hole within an array
    ],
)
def test_reading_goes_on_after_a_damaged_object(damaged):
    text = b"[" + b",\n".join([_event_text("a"), damaged, _event_text("c"), _event_text("d")])
    for size in (1 << 20, 7, 1):
        rows, source = _scan(text + b"]", [size])
        assert [row["name"] for row in rows] == ["a", "c", "d"], size
        assert source.damaged == (1, 1 + len(_event_text("a")) + 2)
        assert source.cut == -1


def test_a_lost_quote_at_the_end_of_an_object_may_cost_the_next_one_but_no_more():
    broken = b'{"ph":"X","name":"b}'
    text = b"[" + b",\n".join([_event_text("a"), broken, *map(_event_text, "cde")]) + b"]"
    assert _names(text) == ["a", "c", "d", "e"]


def test_a_brace_too_much_loses_no_event():
    text = b'[{"ph":"X","name":"a"}},{"ph":"X","name":"b"}]'
    rows, source = _scan(text)
    assert [row["name"] for row in rows] == ["a", "b"]
    assert source.damaged == (1, 22)


def test_objects_inside_a_damaged_one_are_not_taken_for_events():
    text = b'[{"ph":"X","args":[{"name":"no"},{"name":"neither"} oops]},{"ph":"X","name":"b"}]'
    assert _names(text) == ["b"]


def test_a_damaged_outermost_object_still_gives_its_events():
    assert _names(b'{"a" 1, "traceEvents": [{"ph":"X","name":"a"}]}') == ["a"]


def test_documents_one_after_the_other_are_read_all():
    text = b'[{"ph":"X","name":"a"}]\n{"traceEvents":[{"ph":"X","name":"b"}]}'
    rows, source = _scan(text)
    assert [row["name"] for row in rows] == ["a", "b"]
    assert source.damaged == (0, -1)


def test_an_object_that_is_too_big_is_given_up_and_counted():
    big = b'{"ph":"X","name":"big","args":{"x":"' + b"x" * 5000 + b'"}}'
    text = b"[" + b",".join([_event_text("a"), big, _event_text("b")]) + b"]"
    for size in (1 << 20, 100):
        rows, source = _scan(text, [size], most_bytes=1000)
        # All at once, nothing has to be kept for it.
        assert [row["name"] for row in rows] == (["a", "big", "b"] if size > 5000 else ["a", "b"])
        assert source.too_big == (size < 5000)


def test_too_many_brackets_are_damage():
    deep = b'{"ph":"X","args":' + b"[" * 600 + b"]" * 600 + b"}"
    rows, source = _scan(b"[" + deep + b"," + _event_text("b") + b"]")
    assert [row["name"] for row in rows] == ["b"]
    assert source.damaged[0] == 1


def test_keys_with_escapes_are_the_same_keys():
    rows, _ = _scan(rb'[{"p\u0068":"X","\u006eame":"a","args":{"\u0078":1,"n\u0061me":2}}]')
    assert (rows[0]["ph"], rows[0]["name"], rows[0]["args.name"]) == ("X", "a", 2)


def test_the_last_of_equal_keys_counts():
    rows, _ = _scan(b'[{"ph":"X","args":{"name":1,"x":2},"ph":"Y","args":{"x":3}}]')
    assert (rows[0]["ph"], rows[0]["args.name"], rows[0]["args.x"]) == ("Y", "args.name", 3)


def test_other_members_of_the_outermost_object_are_kept_as_they_are_written():
    text = b'{"a": "x\\"", "b": [1, {}], "traceEvents": [], "c": -1.5e3, "d": null}'
    _, source = _scan(text, [1])
    assert source.root == {"a": b'"x\\""', "b": b"[1, {}]", "c": b"-1.5e3", "d": b"null"}


def test_more_members_than_fit_at_once_are_all_kept():
    members = {f"key {number}": number for number in range(200)}
    _, source = _scan(json.dumps({**members, "traceEvents": []}).encode())
    assert source.root == {key: b"%d" % value for key, value in members.items()}


_decimal = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.integers(0, 10**17) | st.integers(0, 100),
    st.just("") | st.from_regex(r"\.[0-9]{1,12}", fullmatch=True),
    st.sampled_from(["", "e0", "E-3", "e+2", "e-12", "E5"]),
)


@_examples
@given(_decimal, st.booleans())
def test_times_are_exact_to_the_picosecond(number, quoted):
    written = f'"{number}"' if quoted else number
    rows, _ = _scan(f'[{{"ph":"X","ts":{written}}}]'.encode())
    whole, part, state = rows[0]["times"][0]
    wide = Context(prec=100)
    picoseconds = wide.multiply(Decimal(number), Decimal(10**6))
    exact = int(picoseconds.quantize(Decimal(1), ROUND_HALF_UP, wide))
    if state == TIME_RANGE:
        assert abs(exact) > 2 * 10**23
    else:
        assert (state, whole * 10**6 + part) == (TIME_OK, exact)
        assert 0 <= part < 10**6


@each_row("text", ['""', '"a"', '"1.2.3"', "NaN", "-Infinity", "null", '"1e"', "[]"])
def test_what_is_no_time_is_said_to_be_none(text):
    rows, _ = _scan(f'[{{"ph":"X","ts":{text}}}]'.encode())
    assert rows[0]["times"][0][2] in {TIME_BAD, 0}
    assert rows[0]["times"][1][2] == 0


def _column(texts: list[str]):
    lengths = np.array([len(text) for text in texts], np.int64)
    buffer = np.frombuffer("".join(texts).encode() + b" ", np.uint8)
    return buffer, np.cumsum(lengths) - lengths, lengths


def test_integers_of_64_bits():
    known = [0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1]
    texts = [*map(str, known), "1.0", "", "-", " 12 ", "x"]
    out, good = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    integers(*_column(texts), np.ones(len(texts), np.bool_), out, good)
    result = [int(v) if ok else None for v, ok in zip(out, good, strict=True)]
    assert result == [
        0, -1, 2**63 - 1, -(2**63), -1, None, None, None, None, None, 12, None,
    ]  # fmt: skip


@_examples
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60)))
def test_floats_are_right_to_the_last_bit_or_left_to_python(numbers):
    texts = [repr(number) for number in numbers]
    out, state = np.zeros(len(texts)), np.zeros(len(texts), np.uint8)
    floats(*_column(texts), out, state)
    for text, value, how in zip(texts, out.tolist(), state.tolist(), strict=True):
        assert how == TIME_BAD or math.copysign(1, value) * value == math.copysign(
            1, float(text)
        ) * float(text)
        assert how == TIME_BAD or value == float(text)


@_examples
@given(st.lists(st.dictionaries(st.text(max_size=5), _any, max_size=5), max_size=4))
def test_members_are_those_of_json_loads(objects):
    buffer, starts, lengths = _column([json.dumps(item, indent=1) for item in objects])
    result = members_of(buffer, Spans(starts, lengths))
    read: list[dict] = [{} for _ in objects]
    for row in range(len(result.kind)):
        key = json.loads(f'"{result.key.bytes(buffer, row).decode()}"')
        value = result.value.bytes(buffer, row).decode()
        if result.kind[row] in {kinds.STRING, kinds.ESCAPED}:
            value = f'"{value}"'
        read[int(result.parent[row])][key] = json.loads(value)
    assert _equal(read, objects)


@_examples
@given(_documents(), st.data())
def test_damaged_bytes_never_break_the_scanner(document, data):
    _, text, lines = document
    harmed = bytearray(text)
    for _ in range(data.draw(st.integers(1, 6))):
        if harmed:
            at = data.draw(st.integers(0, len(harmed) - 1))
            harmed[at] = data.draw(st.sampled_from(list(b'{}[]",:\\ \x00\xff1e')))
    size = data.draw(st.integers(1, 64))
    events = JsonEvents(_KEYS, times=("ts", "dur"), anchor="ph", lines=lines)
    last = -1
    for start in range(0, len(harmed) + size, size):
        block = bytes(harmed[start : start + size])
        for result in events.feed(block) if block else events.finish():
            assert (np.diff(result.offset) >= 2).all()
            assert result.offset[0] > last
            last = int(result.offset[-1])
            assert last + int(result.size[-1]) <= len(harmed)
            for key in _KEYS:
                there = result.kind(key) != kinds.ABSENT
                spans = result.spans(key).take(there)
                assert (spans.start >= 0).all()
                assert (spans.length >= 0).all()
                assert (spans.start + spans.length <= result.buffer.size).all()
                members = members_of(
                    result.buffer, result.spans(key).take(result.kind(key) == kinds.OBJECT)
                )
                assert (members.value.start + members.value.length <= result.buffer.size).all()
