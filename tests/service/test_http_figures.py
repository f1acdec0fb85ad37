"""Figures over HTTP: those of notebooks, as Plotly's JSON."""

import json

import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem
from tests.waiting import until

import peakline
from peakline.figures.named import FigureQuestion, figure_json, figure_names

CNN = SESSIONS["tf2_cnn"]
TWO = SESSIONS["tf2_multihost"]


def test_the_figures_are_listed_with_their_parameters(shared_face):
    listed = shared_face.client.get("/api/figures").json()
    assert [each["name"] for each in listed] == figure_names()
    (ops,) = [each for each in listed if each["name"] == "op_stats"]
    assert ops["doc"] == "The 20 ops with the most self time, on devices and on the host."
    assert ops["parameters"]["properties"]["side"]["enum"] == ["device", "host"]


@pytest.fixture
def profile(sample_logdir):
    with peakline.open(sample_logdir, session=CNN) as opened:
        yield opened


@each_row("theme", ["light", "dark"])
@each_row("name", figure_names())
def test_it_is_the_figure_of_the_profile(shared_face, profile, name, theme):
    answer = shared_face.client.get(f"/api/sessions/{CNN}/figures/{name}", params={"theme": theme})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == figure_json(profile, FigureQuestion(name, theme=theme))


def test_a_figure_is_validated_by_its_content(shared_face):
    path = f"/api/sessions/{CNN}/figures/op_stats"
    first = shared_face.client.get(path)
    again = shared_face.client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = shared_face.client.get(path, params={"theme": "dark"})
    assert other.headers["etag"] != first.headers["etag"]


def test_what_is_asked_of_it_chooses_the_host_and_the_side(shared_face):
    titles = {
        host: shared_face.client.get(
            f"/api/sessions/{TWO}/figures/step_breakdown", params={"host": host}
        ).json()["layout"]["title"]["subtitle"]["text"]
        for host in ("localhost_47507", "localhost_56665")
    }
    assert len(set(titles.values())) == 2
    path = f"/api/sessions/{CNN}/figures/op_stats"
    sides = {
        side: shared_face.client.get(path, params={"side": side}).json()
        for side in ("device", "host")
    }
    assert sides["device"] is None
    assert [trace["name"] for trace in sides["host"]["data"]] == ["host"]


def test_warnings_come_with_every_figure(shared_face):
    path = f"/api/sessions/{SESSIONS['jax_captured']}/figures"
    for name in ("peak_icicle", "memory_over_time", "peak_icicle"):
        answer = shared_face.client.get(f"{path}/{name}")
        assert answer.content == b"null"
        (warning,) = json.loads(answer.headers["peakline-warnings"])
        assert warning["kind"] == "no_memory_events"
    assert "peakline-warnings" not in shared_face.client.get(f"{path}/op_stats").headers


@each_row(
    ("path", "status", "code", "detail"),
    [
        (f"{CNN}/figures/pie", 404, "NOT_FOUND", "no figure 'pie'; there is: churn"),
        (f"{CNN}/figures/churn?theme=pink", 400, "INVALID_ARGUMENT", "theme"),
        (f"{CNN}/figures/churn?themes=dark", 400, "INVALID_ARGUMENT", "themes"),
        (f"{CNN}/figures/churn?side=host", 400, "INVALID_ARGUMENT", "churn takes no side"),
        (f"{CNN}/figures/churn?allocator=x", 404, "NOT_FOUND", "no allocator 'x'"),
        (f"{CNN}/figures/churn?host=x", 404, "NOT_FOUND", "x"),
        (f"{TWO}/figures/churn", 400, "INVALID_ARGUMENT", "a figure needs one host"),
        ("nosuch/figures/churn", 404, "NOT_FOUND", "nosuch"),
    ],
)
def test_what_cannot_be_drawn_is_a_problem(shared_face, path, status, code, detail):
    assert detail in problem(shared_face.client.get(f"/api/sessions/{path}"), status, code)


def test_a_figure_waits_at_the_gate_of_all_questions(shared_face, monkeypatch):
    gate = shared_face.analysis.gate
    monkeypatch.setattr(gate, "_queued", 0)
    monkeypatch.setattr(gate, "_concurrent", 1)
    until(lambda: gate.running == 0)
    with gate.enter():
        answer = shared_face.client.get(f"/api/sessions/{CNN}/figures/kernels")
    problem(answer, 429, "RESOURCE_EXHAUSTED")
