"""Names of nodes as columns of parts, compared with Python's own splitting and replacing."""

import re

import numpy as np
import pytest
from tests.tools.scopes import ask

import peakline
from peakline.graph.index import Strings
from peakline.graph.scopes.paths import DEEPEST, split_paths, stems_of
from peakline.schema import GraphDef
from peakline.tables.columns import Names
from peakline.wire import Interner, utf8_of

NAMES = [
    "", "/", "//", "a", "a/", "/a", "a//b", "a/b/c_1", "a/b/c_2", "a/b/c_2_3", "a/b/c.1-2", "_1",
    "1", "12/3", "1/23", "a_1_", "a#/b#_1", "a_#", "a__1", "x1y22_3", "ä/ö/ü_12", "日本/語_1",
    "a\n/b_1\n", "٣/x_٣", "a/b/c_1_2_3_4", "a/b:0", "/".join("p1" for _ in range(DEEPEST)),
    "/".join(f"p_{n}" for n in range(DEEPEST + 9)), "", "a/b/c_1",
]  # fmt: skip


def numbered(texts):
    """Numbers in order of first appearance."""
    numbers = {}
    return [numbers.setdefault(text, len(numbers)) for text in texts]


def plain_stem(text):
    bare = re.sub(r"(?:[._-][0-9]+)+\Z", "", text)
    return re.sub(r"[0-9]+", "#", bare)


def interned(texts):
    strings = Interner()
    for text in texts:
        strings.add_bytes(text)
    return strings.texts()


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        NAMES,
        [name for name in NAMES if name.isascii()],
        interned(name.encode() for name in NAMES),
        interned(name.encode() for name in NAMES if name.isascii()),
        # Each is no UTF-8, both together would be.
        interned([b"a/\xc3", b"\xa4/b_1", b"c"]),
    ],
    ids=["none", "empty", "all", "ascii", "interned", "interned-ascii", "undecodable"],
)
def test_texts_are_split_and_numbered_as_python_does(texts):
    paths = split_paths(texts)
    parts = [text.split("/", DEEPEST - 1) for text in texts]
    assert paths.counts.tolist() == [len(one) for one in parts]
    flat = [part for one in parts for part in one]
    assert paths.codes.tolist() == numbered(flat)
    distinct = list(dict.fromkeys(flat))
    assert list(paths.parts) == distinct
    assert paths.stems.tolist() == numbered(map(plain_stem, distinct))
    assert [paths.text(row, 0) for row in range(len(texts))] == list(texts)
    data, spans = utf8_of(texts)
    assert spans.texts(data) == list(texts)


def test_stems_of_rows_are_numbered_in_the_order_of_the_rows():
    values = list(dict.fromkeys(NAMES))
    codes = np.array([5, -1, 9, 7, 8, 0, 5, *range(len(values))], np.int32)
    texts = ["" if code < 0 else values[code] for code in codes.tolist()]
    for held in (values, interned(value.encode() for value in values)):
        assert stems_of(Names(codes, held)).tolist() == numbered(map(plain_stem, texts))


def test_a_null_column_has_the_stem_of_the_empty_text():
    assert stems_of(Names.constant(None, 3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "columns",
    [
        [[""], ["a", "b", "c"], ["b", "d"]],
        [[""], ["a", "", "c"]],
        [["a", "a", "b"], ["b", "c", "d", "e"]],
        [[], ["a"], ["b", "b"], ["c", "d", "e", "f"]],
    ],
)
def test_strings_of_several_columns_have_one_numbering(columns):
    strings, whole = Strings(), []
    for values in columns:
        codes = strings.codes(Names(np.array([*range(len(values)), -1], np.int32), values))
        whole += values
        assert [strings.values[code] for code in codes[:-1].tolist()] == values
        assert codes[-1] == -1
        assert strings.values == list(dict.fromkeys(whole))
    assert all(strings.code(text) == strings.values.index(text) for text in whole)
    assert strings.code("no such") == -2


def written(tmp_path, graph):
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    return path


def test_nodes_of_odd_names_stand_in_scopes_and_their_edges_lead_to_them(tmp_path):
    names = [name for name in dict.fromkeys(NAMES) if name]
    graph = GraphDef()
    for place, name in enumerate(names):
        inputs = names[max(place - 2, 0) : place]
        # What only orders comes last.
        graph.node.add(
            name=name, op="NoOp",
            input=[*inputs[:1], *(f"^{one}" for one in inputs[1:] if ":" not in one)],
        )  # fmt: skip
    with peakline.open(written(tmp_path, graph)) as profile:
        edges = profile.table("edges").to_pylist()
        found = ask(profile, opened="none")
        for name in names[:8]:
            assert name in [row["name"] for row in ask(profile, view="search", search=name)["rows"]]
    assert sum(found["items"]["nodes"]) == len(names)
    expected = [
        (text.removeprefix("^").removesuffix(":0"), node.name, text.startswith("^"))
        for node in graph.node for text in node.input
    ]  # fmt: skip
    assert [(one["source"], one["target"], one["is_control"]) for one in edges] == expected


def test_whether_there_are_nodes_needs_no_decoding(tmp_path):
    graph = GraphDef()
    graph.node.add(name="a", op="NoOp")
    inner = graph.library.function.add()
    inner.signature.name = "f"
    only = GraphDef(library=graph.library)
    for one, has in ((graph, True), (only, False)):
        with peakline.open(written(tmp_path, one)) as profile:
            assert profile.has_rows("nodes") is has
            assert profile.has_rows("functions")
            assert bool(profile.table("nodes").num_rows) is has


def test_a_function_with_nodes_is_enough_for_a_table_of_nodes(tmp_path):
    graph = GraphDef()
    inner = graph.library.function.add()
    inner.signature.name = "f"
    inner.node_def.add(name="a", op="NoOp")
    with peakline.open(written(tmp_path, graph)) as profile:
        assert profile.has_rows("nodes")
