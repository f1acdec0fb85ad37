"""Two sessions compared over HTTP, from a real server; and the tables there are."""

import json
import shutil

import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem, serving

from peakline.__main__ import main
from peakline.tables import TABLES
from peakline.tables.sql_views import view, view_names

PLUGIN = "plugins/profile"
MULTI = SESSIONS["tf2_multihost"]
JAX = SESSIONS["jax_captured"]
PAIR = {"first": "ill", "second": "healthy"}


@pytest.fixture(scope="module")
def logdir(root, sample_logdir, tmp_path_factory):
    place = tmp_path_factory.mktemp("compare") / "logs"
    shutil.copytree(sample_logdir, place)
    programs = root / "tests" / "data" / "programs" / "time"
    for session, name in (("ill", "input_bound"), ("healthy", "input_bound_healthy")):
        folder = place / PLUGIN / session
        folder.mkdir()
        shutil.copyfile(programs / f"{name}.xplane.pb.gz", folder / "host.xplane.pb.gz")
    return place


@pytest.fixture(scope="module")
def face(logdir, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("http"), logdir) as running:
        yield running


@pytest.fixture
def compare(face):
    def ask(headers=None, **query):
        return face.client.get("/api/compare", params=query, headers=headers)

    return ask


@each_row("form", ["json", "markdown"])
def test_it_is_what_the_verb_prints(compare, logdir, capsys, form):
    places = [str(logdir / PLUGIN / PAIR[side] / "host.xplane.pb.gz") for side in PAIR]
    assert main(["diff", *places, f"--{form}"]) == 0
    printed = capsys.readouterr().out.replace(f"{logdir}/{PLUGIN}/", "")
    answer = compare(**PAIR, format=form)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(
        {"json": "application/json", "markdown": "text/markdown"}[form]
    )
    assert answer.text == printed


def test_the_numbers_are_those_of_the_tools(compare, face):
    result = compare(**PAIR).json()
    for side, session in (("before", "ill"), ("after", "healthy")):
        answer = face.client.get(f"/api/sessions/{session}/tools/summary").json()
        assert result["time"][side]["times"] == answer["time"]["times"]
        (peak,) = answer["memory"]["allocators"]
        assert result["allocators"][0][side]["peak_bytes"] == peak["peak_bytes"]
        assert result[side]["path"] == f"{session}/host.xplane.pb.gz"


def test_who_has_it_gets_304(compare):
    tag = compare(**PAIR).headers["etag"]
    again = compare(**PAIR, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    swapped = compare(first=PAIR["second"], second=PAIR["first"], headers={"If-None-Match": tag})
    assert swapped.status_code == 200


def test_hosts_are_named_where_there_are_several(compare):
    assert problem(compare(first=MULTI, second=JAX), 400, "INVALID_ARGUMENT") == (
        f"comparing session {MULTI} needs one host; there is: localhost_47507, localhost_56665"
    )
    named = {"first_host": "localhost_47507", "second_host": "localhost_56665"}
    result = compare(first=MULTI, second=MULTI, **named).json()
    assert (result["before"]["host"], result["after"]["host"]) == tuple(named.values())
    assert (result["time"]["before"]["steps"], result["time"]["after"]["steps"]) == (36, 71)


def test_warnings_say_whose_they_are(compare):
    answer = compare(first=JAX, second="ill")
    assert json.loads(answer.headers["peakline-warnings"]) == [
        {
            "kind": "no_memory_events",
            "count": 1,
            "detail": "first: no memory events in this profile",
        }
    ]
    assert answer.json()["warnings"]["before"][0]["kind"] == "no_memory_events"


@each_row(
    ("query", "status", "code", "word"),
    [
        ({"first": "ill"}, 400, "INVALID_ARGUMENT", "second is missing"),
        ({**PAIR, "format": "csv"}, 400, "INVALID_ARGUMENT", "format"),
        ({**PAIR, "firsthost": "x"}, 400, "INVALID_ARGUMENT", "'firsthost'"),
        ({"first": "ill", "second": "nosuch"}, 404, "NOT_FOUND", "nosuch"),
        ({**PAIR, "second_host": "other"}, 404, "NOT_FOUND", "'other'"),
        ({"first": "../ill", "second": "ill"}, 400, "INVALID_ARGUMENT", "session id"),
        ({**PAIR, "root": "/etc"}, 403, "PERMISSION_DENIED", "/etc"),
    ],
)
def test_what_is_wrong_is_told_in_a_problem_document(compare, query, status, code, word):
    assert word in problem(compare(**query), status, code)


def test_a_host_that_is_not_served_is_noted(logdir, tmp_path):
    own = tmp_path / "logs"
    shutil.copytree(logdir, own)
    (own / PLUGIN / "ill" / "b.xplane.pb").symlink_to(logdir / PLUGIN / "ill" / "host.xplane.pb.gz")
    with serving(tmp_path, own) as face:
        answer = face.client.get("/api/compare", params=PAIR)
        assert answer.status_code == 200
        (note,) = json.loads(answer.headers["peakline-notes"])
        assert note == "session ill: host b: a link leads out of the served log directories"


def test_every_table_and_column_is_listed_with_its_unit(face):
    tables = face.client.get("/api/tables").json()
    assert [(table["name"], table["doc"]) for table in tables] == [
        (table.name, table.doc) for table in TABLES.values()
    ]
    by_name = {table["name"]: {c["name"]: c for c in table["columns"]} for table in tables}
    assert by_name["events"]["start_ps"] == {
        "name": "start_ps",
        "type": "int64",
        "unit": "ps",
        "nullable": TABLES["events"]["start_ps"].nullable,
        "doc": TABLES["events"]["start_ps"].doc,
    }
    units = {
        ("buffers", "requested_bytes"): "bytes", ("memory_snapshots", "peak_bytes_in_use"): "bytes",
        ("op_stats", "bytes_accessed"): "bytes", ("kernels", "occupancy_percent"): "%",
        ("log_records", "time_ns"): "ns", ("op_times", "all_start_nanos"): "ns",
        ("op_times", "all_start_micros"): "us", ("traced_runs", "wall_time_s"): "s",
        ("op_stats", "occurrences"): "", ("events", "name"): "", ("op_stats", "is_eager"): "",
    }  # fmt: skip
    assert {place: by_name[place[0]][place[1]]["unit"] for place in units} == units


def test_every_view_is_listed_with_its_tables(face):
    views = face.client.get("/api/views").json()
    assert [(each["name"], each["doc"]) for each in views] == [
        (name, view(name).doc) for name in sorted(view_names())
    ]
    (waits,) = (each for each in views if each["name"] == "longest_waits")
    assert waits["tables"] == ["events", "lines"]
    assert waits["units"] == view("longest_waits").units
    assert waits["columns"][0] == {
        "name": "thread",
        "type": "string",
        "unit": "",
        "nullable": False,
        "doc": view("longest_waits")["thread"].doc,
    }
    assert face.client.get("/api/views", params={"x": "1"}).status_code == 400
