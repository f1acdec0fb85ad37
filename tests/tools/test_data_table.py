"""DataTable JSON and CSV."""

import json
import math

from peakline.toolbox.written import Column, DataTable, tables_csv, tables_json

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
    found = json.loads(tables_json(role, DataTable([])))
    assert found == [
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
