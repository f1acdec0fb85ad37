"""The ``summary`` tool: what the verb says, for one host and for several."""

import json

from tests.each_row import each_row
from tests.engine.ending import DATA

import peakline
from peakline.engine import Engine
from peakline.repository import Repository
from peakline.tools import find_tool

MULTI = DATA / "sessions" / "tf2_multihost"


def printed(capsys, *words):
    from peakline.__main__ import main

    capsys.readouterr()
    assert main(["summary", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def with_names(document):
    """With file names for paths."""
    path = document["profile"]["path"].rpartition("/")[2]
    return document | {"profile": document["profile"] | {"path": path}}


@each_row(
    "file",
    [
        "programs/time/input_bound.xplane.pb.gz",
        "programs/leak_list.xplane.pb.gz",
        "pprof/device_memory.pprof.pb.gz",
        "oom_report/tf_bfc_oom.log.gz",
        "memory_log/tf1_control_flow.log.gz",
        "run_metadata/tf1_cnn_2.pb.gz",
        "chrome_trace/noleak.pt.trace.json.gz",
    ],
)
def test_it_is_what_the_verb_prints(capsys, file):
    with peakline.open(DATA / file) as profile:
        assert find_tool("summary").supports(profile)
        told = json.loads(profile.tool("summary").content)
    assert told == with_names(printed(capsys, DATA / file))


def test_a_graph_has_no_summary():
    with peakline.open(DATA / "graph_def" / "frozen.pb") as profile:
        assert not find_tool("summary").supports(profile)


def test_several_hosts_and_who_keeps_them_waiting(capsys):
    (session,) = Repository(MULTI).sessions()
    answer = Engine().tool(session, "summary")
    told, verb = json.loads(answer.content), printed(capsys, MULTI)
    names = [host.pop("host") for host in told["hosts"]]
    assert names == ["localhost_47507", "localhost_56665"]
    assert told.pop("straggler_text") == "no host keeps the others waiting"
    assert told == {"hosts": [*map(with_names, verb["hosts"])], "straggler": verb["straggler"]}


def test_one_of_several_hosts_is_told_alone(capsys):
    (session,) = Repository(MULTI).sessions()
    answer = Engine().tool(session, "summary", host="localhost_56665")
    verb = printed(capsys, MULTI, "--host", "localhost_56665")
    assert json.loads(answer.content) == with_names(verb)


def test_warnings_of_a_question_are_in_its_document_each_time():
    (session,) = Repository(DATA / "sessions" / "jax_cpu").sessions()
    engine = Engine()
    engine.tool(session, "memory_findings")
    told = json.loads(engine.tool(session, "summary").content)
    assert [(one["kind"], one["count"]) for one in told["warnings"]] == [("no_memory_events", 1)]


def test_it_stays_small_however_many_steps_there_are():
    with peakline.open(DATA / "sessions" / "jax_captured") as profile:
        answer = profile.tool("summary").content
    assert json.loads(answer)["time"]["steps"] == 113
    assert len(answer) < 8000
