"""200 clients at once, every answer compared; the bound of the queue; a deadline in many hosts."""

from __future__ import annotations

import gc
import gzip
import http.client
import os
import time
from pathlib import Path

import grpc
import pytest
from tests.service.grpc_client import Client
from tests.service.load import run_load
from tests.service.process_numbers import costs_of, metric, metrics_of, tell
from tests.service.questions import HALF, add_half_session, files_of, questions_of
from tests.service.server_process import running_server
from tests.waiting import HANG_S, until

import peakline
from peakline.engine import Engine
from peakline.errors import InputError
from peakline.repository import Repository
from peakline.tools import find_tool

CLIENTS = 200
MIB = 1 << 20
HOSTS = 64


@pytest.fixture(scope="module")
def served_logdir(sample_logdir, tmp_path_factory):
    """The samples' sessions, and one with a host that cannot be read. Not to be written into."""
    logdir = tmp_path_factory.mktemp("load") / "logs"
    # Links, but each with a name of its own: to a server they are different files.
    for file in sample_logdir.rglob("*.xplane.pb*"):
        place = logdir / file.relative_to(sample_logdir)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, place)
    add_half_session(logdir)
    return logdir


@pytest.fixture(scope="module")
def questions(served_logdir):
    return questions_of(served_logdir)


def is_idle(server):
    """Whether all answers are counted: one over HTTP is counted after it was sent."""
    counted = metrics_of(server)
    # One is the question for the metrics itself.
    in_flight = sum(counted[f'peakline_in_flight{{face="{face}"}}'] for face in ("grpc", "http"))
    return in_flight <= 1 and counted["peakline_gate_running"] == 0


def test_two_hundred_clients_get_the_right_answers_and_cost_no_more_the_second_time(
    served_logdir, questions
):
    """The queue is long enough for all, so that nobody may be refused."""
    options = ("--max-queued", 2 * CLIENTS, "--access-log", "off")
    with running_server(served_logdir, *options) as server:
        idle = costs_of(server)
        first = run_load(server, questions, clients=CLIENTS, seconds=2)
        until(lambda: is_idle(server), "the first round ends")
        before = costs_of(server)
        second = run_load(server, questions, clients=CLIENTS, seconds=6)
        until(lambda: costs_of(server).descriptors <= before.descriptors + 8, "connections close")
        until(lambda: is_idle(server), "the second round ends")
        after, counted = costs_of(server), metrics_of(server)
        tell(first.summary(), second.summary(), idle, before, after)
        assert first.busy == second.busy == 0
        asked = first.asked + second.asked
        assert all(asked[number] for number in range(len(questions)))
        # Every answer that somebody got is counted, once, under its code.
        for (face, method, code), count in (first.codes + second.codes).items():
            name = f'peakline_requests_total{{code="{code}",face="{face}",method="{method}"}}'
            assert counted[name] == count
        assert counted['peakline_refused_total{reason="busy"}'] == 0
        # Each file was decoded once, whoever asked for it.
        assert counted["peakline_cache_misses_total"] == files_of(served_logdir)
        assert counted["peakline_cache_evictions_total"] == 0
        # A pool grows until it has a thread for each of those who ask at once, in whichever round
        # the pace of the machine lets them, and the libraries have some twenty of their own;
        # nothing grows with the questions, of which there are several hundred.
        assert after.threads <= idle.threads + CLIENTS + 40
        assert after.memory < before.memory + 150 * MIB
        assert after.peak < 1500 * MIB
        assert server.end() == 0


def test_an_error_holds_no_file_open(served_logdir):
    """A file that cannot be read is closed when its error was told, not at some collection."""
    engine, session = Engine(), Repository(served_logdir).session(HALF)
    gc.collect()
    gc.disable()
    try:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(10):
            with pytest.raises(InputError):
                engine.tool(session, "memory_profile", host="bad")
            with pytest.raises(InputError):
                engine.sql(session, "select 1", host="bad")
            assert engine.tool(session, "memory_profile").notes
        # The good host's is open on purpose, and libraries open a few of their own.
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 8
    finally:
        gc.enable()
        engine.cache.clear()


def test_calls_are_refused_only_beyond_the_queue_and_every_refusal_is_counted(
    served_logdir, questions
):
    concurrent, queued = 2, 4
    options = ("--max-concurrent", concurrent, "--max-queued", queued, "--access-log", "off")
    with running_server(served_logdir, *options) as server:
        few = run_load(server, questions, clients=concurrent + queued, seconds=1)
        assert few.busy == 0
        many = run_load(server, questions, clients=CLIENTS, seconds=2)
        until(lambda: is_idle(server), "all is counted")
        tell(many.summary())
        assert many.busy > 0
        assert sum(many.asked.values()) > 0
        assert metric(server, 'peakline_refused_total{reason="busy"}') == many.busy
        # Whoever comes later is served as if nothing had been.
        again = run_load(server, questions, clients=concurrent + queued, seconds=1)
        assert again.busy == 0
        assert server.end() == 0


@pytest.fixture(scope="module")
def wide_logdir(sessions, tmp_path_factory):
    """One session of many hosts, each with a profile of its own to be decoded."""
    logdir = tmp_path_factory.mktemp("wide")
    place = logdir / "plugins" / "profile" / "wide"
    place.mkdir(parents=True)
    (sample,) = (sessions / "tf2_cnn").glob("**/*.xplane.pb.gz")
    content = gzip.decompress(sample.read_bytes())
    for number in range(HOSTS):
        (place / f"h{number:03d}.xplane.pb").write_bytes(content)
    return logdir


def test_a_deadline_in_the_middle_of_many_hosts_ends_the_work_and_leaves_it_whole(wide_logdir):
    tool = find_tool("memory_profile")
    with peakline.open(wide_logdir, session="wide", host="h000") as profile:
        one = profile.tool(tool.name).content
    names = [f"h{number:03d}" for number in range(HOSTS)]
    expected = tool.aggregate([(name, one) for name in names], tool.validated({}), "json")
    question = {"session_id": "wide", "tool_name": tool.name}
    with running_server(wide_logdir, "--access-log", "off") as server:
        client = Client(f"127.0.0.1:{server.grpc_port}")
        # The kernels are loaded; what takes time from here on is decoding.
        client.call("GetSessionToolData", **question, host_name="h000")
        began = time.monotonic()
        with pytest.raises(grpc.RpcError) as caught:
            client.call("GetSessionToolData", timeout=0.3, **question)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: metric(server, "peakline_gate_running") == 0, "the work ends")
        tell(f"ended {time.monotonic() - began - 0.3:.2f} s after the deadline")
        decoded = metric(server, "peakline_cache_misses_total")
        assert decoded < HOSTS
        # One who hangs up ends it as well.
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=HANG_S)
        connection.request("GET", f"/api/sessions/wide/tools/{tool.name}")
        until(lambda: metric(server, "peakline_cache_misses_total") > decoded, "it goes on")
        connection.close()
        until(lambda: metric(server, "peakline_gate_running") == 0, "the work ends again")
        assert metric(server, "peakline_cache_misses_total") < HOSTS
        answer = client.call("GetSessionToolData", timeout=HANG_S, **question)
        assert (answer.output, answer.error_message) == (expected, "")
        client.close()
        assert server.end() == 0
