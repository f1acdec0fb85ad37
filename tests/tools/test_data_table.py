"""How rows become answers: JSON, data tables, lines of text."""

import json
import math

import numpy as np
from tests.each_row import each_row

from peakline.toolbox.json_rows import escaped, lists, member, numbers, objects, texts
from peakline.toolbox.written import Column, DataTable, tables_csv, tables_json
from peakline.viewer.lines import Gap, Lines, put_together
from peakline.wire import Interner

TABLE = DataTable(
    [Column("n", "number", "Number"), Column("t", "string"), Column("b", "boolean", "Yes")],
    [(1, 'a "b"', True), (None, None, False), (math.nan, "ü", True)],
    {"unit": "us"},
)


def test_json_is_compact_sorted_and_has_doubles():
    assert tables_json(TABLE).decode() == (
        '{"cols":[{"id":"n","label":"Number","type":"number"},{"id":"t","label":"","type":"string"},'
        '{"id":"b","label":"Yes","type":"boolean"}],"p":{"unit":"us"},"rows":['
        '{"c":[{"v":1.0},{"v":"a \\"b\\""},{"v":true}]},'
        '{"c":[{"v":""},{"v":""},{"v":false}]},'
        '{"c":[{"v":null},{"v":"ü"},{"v":true}]}]}'
    )


def test_several_tables_are_an_array_and_one_without_anything_is_empty():
    role = DataTable([Column("x", "string", "X", {"role": "tooltip"})])
    result = json.loads(tables_json(role, DataTable([])))
    assert result == [
        {"cols": [{"id": "x", "label": "X", "type": "string", "p": {"role": "tooltip"}}],
         "rows": []},
        {},
    ]  # fmt: skip


def test_numbers_are_doubles_and_texts_may_hold_anything():
    columns = [Column("n", "number"), Column("t", "string")]
    table = DataTable(columns, [(2, "100 % %s"), (-math.inf, ""), (1e16, "\ud800\n")])
    assert json.loads(tables_json(table))["rows"] == [
        {"c": [{"v": 2.0}, {"v": "100 % %s"}]},
        {"c": [{"v": None}, {"v": ""}]},
        {"c": [{"v": 1e16}, {"v": "?\n"}]},
    ]


def test_csv_quotes_every_field():
    assert tables_csv(TABLE).decode() == (
        '"Number","t","Yes"\n"1.0","a ""b""","True"\n"","","False"\n"","ü","True"\n'
    )


NAMES = ["", "plain", 'quo"te', "back\\slash", "new\nline", "é漢字", "\x7f"]


def _read(result):
    return json.loads(f"[{result.data.tobytes().decode().rstrip(',')}]")


def test_members_without_a_text_are_left_out():
    codes = np.array([*range(len(NAMES)), -1])
    size = np.array([0, 1, -2, 2**62, 5, 0, 7, 0])
    made = objects(
        codes.size,
        member("name", '"{}"', escaped(NAMES).at(codes)),
        member("size", "{}", numbers(size)),
        member("mib", "{}", numbers(size / 2**20)),
    )
    wanted = [
        {
            **({"name": text} if text else {}),
            **({"size": number, "mib": number / 2**20} if number else {}),
        }
        for text, number in zip([*NAMES, ""], size.tolist(), strict=True)
    ]
    assert _read(made) == wanted


def test_a_pool_of_texts_is_escaped_as_single_ones_are():
    for names in (NAMES, ["some", "plain", "names"]):
        pool = Interner()
        for name in names:
            pool.add_bytes(name.encode())
        one, other = escaped(pool.texts()), escaped(names)
        assert one.data.tobytes() == other.data.tobytes()
        assert one.bounds.tolist() == other.bounds.tolist()


def test_lists_of_objects():
    inner = objects(3, member("id", '"{}"', numbers(np.array([1, 2, 3]))))
    outer = objects(3, member("all", "[{}]", lists(inner, np.array([2, 0, 1]))))
    assert _read(outer) == [{"all": [{"id": "1"}, {"id": "2"}]}, {}, {"all": [{"id": "3"}]}]


def test_a_lone_surrogate_becomes_a_question_mark():
    assert texts(["a\ud800", "b"]).data.tobytes() == b"a?b"


def written(rows, *gaps):
    lines = Lines(rows, gaps)
    starts = np.cumsum(lines.lengths) - lines.lengths
    return put_together((2 + int(lines.lengths.sum()) + 1), b"<<", [(lines, 2 + starts)], b">")


def test_a_text_per_line_between_two_fixed_ones():
    assert written(3, Gap("(", np.array([1, 0, 1]), ")", ["", "xy"])) == b"<<(xy)()(xy)>"


@each_row(
    "value",
    [0, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 12_345_678, 10**16, 2**63 - 1, -1, -(2**63)],
)
def test_whole_numbers(value):
    assert written(2, Gap("", np.array([value, 7]), ",")) == f"<<{value},7,>".encode()


def test_a_zero_can_leave_nothing():
    signed = Gap("a", np.array([0, -5]), ";", unless_zero=True)
    unsigned = Gap("b", np.array([2**64 - 1, 0], np.uint64), ";", unless_zero=True)
    assert written(2, signed, unsigned) == b"<<b18446744073709551615;a-5;>"


def test_more_lines_than_a_thread_writes_at_a_time():
    numbers = np.arange(20_000)
    expected = "".join(f"{number}\n" for number in range(20_000))
    assert written(20_000, Gap("", numbers, "\n")) == f"<<{expected}>".encode()


def test_lines_of_two_kinds_take_turns():
    first = Lines(2, [Gap("a", np.array([1, 22]))])
    second = Lines(2, [Gap("b", np.array([3, 4]))])
    parts = [(first, np.array([0, 4])), (second, np.array([2, 7]))]
    assert put_together(9, b"", parts, b"") == b"a1b3a22b4"


def test_no_lines():
    assert written(0, Gap("a", np.zeros(0, np.int64))) == b"<<>"
