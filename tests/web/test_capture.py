"""Captures from the page: of peers that answer, fail, wait, or may not be asked."""

import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

import grpc
import pytest
from tests.capture.peers import Peer, answer_of, peer, profile_of
from tests.waiting import HANG_S, until
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    load_view,
    open_view,
    screenshot,
    settle,
    tells,
)
from tests.web.servers import PageServer

from peakline.text import size_text


class Behaviour:
    """How a profiler answers: the test that is running says it."""

    def __init__(self) -> None:
        self.answer: Callable[..., bytes] = answer_of

    def __call__(self, *call: object) -> bytes:
        return self.answer(*call)


@dataclass(frozen=True)
class Job:
    """A host of the server with its profiler."""

    behaviour: Behaviour
    peer: Peer

    @property
    def requests(self):
        return self.peer.requests

    def answers(self, answer):
        self.behaviour.answer = answer


@dataclass(frozen=True)
class Served:
    server: PageServer
    jobs: dict[str, Job]


@pytest.fixture(scope="module")
def running(run_server, tmp_path_factory):
    """A server without sessions that knows three hosts: a and b have profilers, nobody is at c."""
    behaviours = {"a": Behaviour(), "b": Behaviour()}
    with peer(behaviours["a"]) as a, peer(behaviours["b"]) as b, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        workers = {"a": a.address, "b": b.address, "c": "{}:{}".format(*nobody.getsockname())}
        with run_server(tmp_path_factory.mktemp("logs"), workers=workers) as server:
            yield Served(server, {"a": Job(behaviours["a"], a), "b": Job(behaviours["b"], b)})


@pytest.fixture
def server(running):
    return running.server


@pytest.fixture
def jobs(running):
    """The profilers, which have not been asked yet."""
    for job in running.jobs.values():
        job.requests.clear()
    return running.jobs


def session_names(server):
    return {one["session_id"] for one in api(server, "sessions")}


def ask(page, hosts=None, seconds=None, name=None):
    page.get_by_role("button", name="Capture …").first.click()
    if hosts is not None:
        page.get_by_label("Hosts, one a line").fill(hosts)
    if seconds is not None:
        page.get_by_label("Seconds to record").fill(str(seconds))
    if name is not None:
        page.get_by_label("Session name").fill(name)


def record(page):
    page.get_by_role("button", name="Record").click()


def states(page):
    """What the dialog says of each host: its state and the detail."""
    rows = page.evaluate(
        """() => [...document.querySelectorAll("dialog tbody tr")].map((row) =>
          [...row.children].map((cell) => cell.innerText))"""
    )
    return {host: tuple(result) for host, *result in rows}


def test_a_capture_of_two_hosts_becomes_a_session(server, jobs, page):
    jobs["a"].answers(lambda *_: profile_of(3))
    jobs["b"].answers(lambda *_: profile_of(5))
    open_view(page, server)
    ask(page, seconds=0.01, name="both")
    # The server's workers are suggested.
    hosts = page.get_by_label("Hosts, one a line")
    eventually(hosts.input_value, "a\nb\nc")
    hosts.fill("a\nb")
    screenshot(page, "capture")
    expect_accessible(page)
    record(page)
    page.get_by_role("link", name="Open both").wait_for()
    assert api(server, "sessions/both")["hosts"] == ["a", "b"]
    sizes = {place.name[0]: place.stat().st_size for place in server.logdir.glob("**/both/*.pb")}
    expected = {"a": ("✓ stored", size_text(sizes["a"])), "b": ("✓ stored", size_text(sizes["b"]))}
    eventually(lambda: states(page), expected)
    screenshot(page, "capture_stored")
    expect_accessible(page)
    assert [request.duration_ms for request in jobs["a"].requests] == [10]
    page.get_by_role("link", name="Timeline").last.click()
    page.wait_for_url(re.compile("#/session/both/timeline"))
    page.get_by_role("dialog").wait_for(state="detached")
    open_view(page, server)
    assert page.get_by_role("grid").get_by_role("link", name="both").count() == 1


def test_progress_is_told_for_each_host_and_a_failure_does_not_lose_the_others(server, jobs, page):
    go_on = threading.Event()

    def slow(*_):
        assert go_on.wait(HANG_S)
        return profile_of()

    def broken(_request, context, _number):
        context.abort(grpc.StatusCode.INTERNAL, "no tracer <b>here</b>")

    jobs["a"].answers(slow)
    jobs["b"].answers(broken)
    open_view(page, server)
    ask(page, hosts="a, b", seconds=0.01, name="half")
    record(page)
    until(lambda: states(page).get("b", ("",))[0] == "✗ failed")
    # Of what the other one does there is a line, too, while it has not answered.
    waits = {"waiting", "connecting", "recording", "receiving"}
    until(lambda: states(page).get("a", ("",))[0] in waits)
    # Escape must not lose what is being recorded.
    page.keyboard.press("Escape")
    settle(page)
    assert page.get_by_role("dialog").is_visible()
    screenshot(page, "capture_progress")
    go_on.set()
    page.get_by_role("link", name="Open half").wait_for()
    tells(page.get_by_role("dialog"), "1 of 2 hosts recorded")
    assert "no tracer <b>here</b>" in states(page)["b"][1]
    assert api(server, "sessions/half")["hosts"] == ["a"]
    screenshot(page, "capture_half")


def test_cancel_ends_the_recording_and_keeps_nothing(server, jobs, page):
    ended = threading.Event()

    def wait(_request, context, _number):
        context.add_callback(ended.set)
        assert ended.wait(HANG_S)
        return profile_of()

    jobs["a"].answers(wait)
    open_view(page, server)
    ask(page, hosts="a", seconds=100, name="never")
    record(page)
    until(lambda: jobs["a"].requests)
    until(lambda: "a" in states(page))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled:").wait_for()
    assert ended.wait(HANG_S)
    eventually(lambda: states(page)["a"][0], "cancelled")
    assert "never" not in session_names(server)
    # The form comes back as it was.
    page.get_by_role("button", name="Change and try again").click()
    eventually(page.get_by_label("Session name").input_value, "never")


def test_nothing_recorded_is_no_session(server, jobs, page):
    before = session_names(server)
    jobs["a"].answers(lambda *_: answer_of(empty_trace=True))
    open_view(page, server)
    ask(page, hosts="a", seconds=0.01)
    record(page)
    page.get_by_text("No host recorded anything").wait_for()
    eventually(lambda: states(page)["a"][0], "✗ recorded nothing")
    assert session_names(server) == before


def test_a_host_that_may_not_be_asked_is_refused_with_the_option_to_allow_it(page, server):
    page.allowed_failures.append("/api/captures")
    open_view(page, server)
    ask(page, hosts="trainer.example.com")
    record(page)
    tells(page.get_by_role("alert"), "--allow-capture trainer.example.com")
    screenshot(page, "capture_refused")


def test_a_job_that_does_not_listen_is_told_with_what_to_do(server, page):
    open_view(page, server)
    ask(page, hosts="c", seconds=0.01)
    record(page)
    tells(page.get_by_role("alert"), "cannot be reached")
    tells(page.get_by_role("dialog"), "start its profiler's server on port 8466")


def test_a_port_that_the_service_ignores_is_told_before(page, server):
    open_view(page, server)
    ask(page, hosts="localhost:9012")
    remark = page.get_by_text("Port 9012 of localhost:9012 is ignored: 8466 is used.")
    tells(remark, "--profiler-port 9012")
    page.get_by_label("Hosts, one a line").fill("localhost:8466")
    remark.wait_for(state="hidden")


def test_options_go_to_the_host_and_addresses_are_remembered(server, jobs, page):
    jobs["a"].answers(lambda *_: profile_of())
    open_view(page, server)
    ask(page, hosts="a", seconds=0.02, name="first")
    page.get_by_text("Options", exact=True).click()
    page.get_by_label("Python tracer").select_option("1")
    page.get_by_label("Others").fill("tpu_trace_mode = TRACE_COMPUTE")
    record(page)
    page.get_by_role("link", name="Open first").wait_for()
    tells(page.get_by_role("dialog"), "advanced_configuration")
    (request,) = jobs["a"].requests
    assert request.opts.python_tracer_level == 1
    assert request.opts.advanced_configuration["tpu_trace_mode"].string_value == "TRACE_COMPUTE"
    load_view(page, server)
    ask(page)
    eventually(page.get_by_label("Hosts, one a line").input_value, "a")
    eventually(page.get_by_label("Seconds to record").input_value, "0.02")
