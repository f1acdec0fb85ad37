"""The tool that says what `peakline steps` says."""

import json
from pathlib import Path

from tests.each_row import each_row

import peakline

DATA = Path(__file__).parents[1] / "data"
FAULTY = DATA / "programs" / "time" / "recompiling.xplane.pb.gz"


def found(profile, **parameters):
    return json.loads(profile.tool("time_findings", **parameters).content)["hosts"]


def test_it_is_the_answer_of_the_verb():
    with peakline.open(FAULTY) as profile:
        (host,) = found(profile)
        answer = profile.time().as_json()
    assert host.pop("host") == profile.host
    assert host == json.loads(json.dumps(answer))
    assert [finding["kind"] for finding in host["findings"]] == ["recompilation"]


@each_row(
    ("parameters", "kinds"),
    [
        ({"kind": "recompilation"}, ["recompilation"]),
        ({"kind": "input_bound"}, []),
        ({"min_severity": "error"}, []),
    ],
)
def test_only_what_is_asked_for(parameters, kinds):
    with peakline.open(FAULTY) as profile:
        (host,) = found(profile, **parameters)
    assert [finding["kind"] for finding in host["findings"]] == kinds


def test_without_the_steps_it_is_short():
    with peakline.open(FAULTY) as profile:
        (host,) = found(profile, steps="false")
    assert "steps" not in host
    assert host["times"]["count"] > 0


def test_every_host_has_its_own():
    repository = peakline.Repository(DATA / "sessions" / "tf2_multihost")
    content = repository.sessions()[0].tool("time_findings").content
    hosts = [host["host"] for host in json.loads(content)["hosts"]]
    assert hosts == ["localhost_47507", "localhost_56665"]
