"""Many clients at once, every answer compared; the bound of the queue; a deadline in many hosts."""

import gc
import gzip
import http.client
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from tests.engine.held_tool import HeldTool
from tests.service.grpc_client import Client
from tests.service.load import run_load
from tests.service.process_numbers import costs_of, metric, metrics_of, tell
from tests.service.questions import HALF, add_half_session, files_of, questions_of
from tests.service.server_here import server_here
from tests.service.server_process import running_server
from tests.waiting import HANG_S, growing, until

import peakline
from peakline.engine import Engine
from peakline.errors import InputError
from peakline.repository import Repository
from peakline.service.settings import Settings
from peakline.tools import find_tool

MIB = 1 << 20


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


@pytest.mark.parametrize(
    ("clients", "rounds"),
    [pytest.param(6, 1, marks=pytest.mark.nightly), pytest.param(200, 2, marks=pytest.mark.soak)],
)
def test_many_clients_get_the_right_answers_and_cost_no_more_the_second_time(
    served_logdir, questions, clients, rounds
):
    """With the options that a server has by itself nobody is refused."""
    with running_server(served_logdir, "--access-log", "off", warms_up=False) as server:
        idle = costs_of(server)
        first = run_load(server, questions, clients=clients)
        until(lambda: is_idle(server), "the first round ends")
        before = costs_of(server)
        second = run_load(server, questions, clients=clients, rounds=rounds)
        until(lambda: costs_of(server).descriptors <= before.descriptors + 8, "connections close")
        until(lambda: is_idle(server), "the second round ends")
        after, counted = costs_of(server), metrics_of(server)
        tell(first.summary(), second.summary(), idle, before, after)
        assert first.busy == second.busy == 0
        request = first.requests + second.requests
        assert all(request[number] for number in range(len(questions)))
        # Every answer that somebody got is counted, once, under its code.
        for (face, method, code), count in (first.codes + second.codes).items():
            name = f'peakline_requests_total{{code="{code}",face="{face}",method="{method}"}}'
            assert counted[name] == count
        assert counted['peakline_refused_total{reason="busy"}'] == 0
        # Each file was decoded once, whoever asked for it.
        assert counted["peakline_cache_misses_total"] == files_of(served_logdir)
        assert counted["peakline_cache_evictions_total"] == 0
        # Pools grow until they have a thread for each of those who are worked for at once, and the
        # libraries have some twenty of their own; nothing grows with those who wait, or with the
        # questions, of which there are several hundred.
        assert after.threads <= idle.threads + 40
        assert after.memory < before.memory + 150 * MIB
        assert after.peak < 1500 * MIB
        assert server.end() == 0


@pytest.mark.soak
def test_200_clients_for_ten_minutes_get_right_answers_and_memory_and_threads_stay(
    served_logdir, questions
):
    samples, over = [], threading.Event()
    with running_server(served_logdir, "--access-log", "off") as server:

        def sample():
            while not over.wait(1):
                samples.append(costs_of(server))

        watcher = threading.Thread(target=sample)
        watcher.start()
        try:
            load = run_load(server, questions, clients=200, seconds=600)
        finally:
            over.set()
            watcher.join(HANG_S)
        half = len(samples) // 2
        first, second = (
            (max(one.memory for one in part), max(one.threads for one in part))
            for part in (samples[:half], samples[half:])
        )
        tell(load.summary(), first, second)
        assert load.busy <= len(load.seconds) / 100
        assert load.quantile(0.99) < Settings(roots=()).request_timeout_s
        assert second[0] <= 1.1 * first[0]
        assert second[1] <= first[1]
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
    concurrent, queued, clients = 2, 4, 20
    pattern = re.compile(r"max_snapshots(=|': ')7")
    same = [question for question in questions if pattern.search(str(question))]
    assert {question.label[0] for question in same} == {"grpc", "http"}
    with server_here(served_logdir, max_concurrent=concurrent, max_queued=queued) as server:
        gate = server.analysis.gate
        assert run_load(server, same, clients=concurrent + queued, rounds=5).busy == 0
        with ThreadPoolExecutor(1) as pool:
            with gate.enter(), gate.enter():
                # Nobody comes in meanwhile: as many as may wait do, and all others are refused.
                asking = pool.submit(run_load, server, same, clients=clients)
                busy = 'peakline_refused_total{reason="busy"}'
                until(lambda: metric(server, busy) == clients - queued, "the others are refused")
                assert gate.waiting == queued
            many = asking.result()
        until(lambda: is_idle(server), "all is counted")
        assert (many.busy, sum(many.requests.values())) == (clients - queued, queued)
        assert metric(server, busy) == many.busy
        # Whoever comes later is served as if nothing had been.
        assert run_load(server, same, clients=concurrent + queued).busy == 0


@pytest.fixture
def wide_logdir(sessions, tmp_path, hosts):
    """One session of many hosts, each with a profile of its own to be decoded."""
    place = tmp_path / "plugins" / "profile" / "wide"
    place.mkdir(parents=True)
    (sample,) = (sessions / "tf2_cnn").glob("**/*.xplane.pb.gz")
    content = gzip.decompress(sample.read_bytes())
    for number in range(hosts):
        (place / f"h{number:03d}.xplane.pb").write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    "hosts", [pytest.param(8, marks=pytest.mark.nightly), pytest.param(64, marks=pytest.mark.soak)]
)
def test_a_deadline_in_the_middle_of_many_hosts_ends_the_work_and_leaves_it_whole(
    wide_logdir, hosts, monkeypatch
):
    tool = find_tool("memory_profile")
    with peakline.open(wide_logdir, session="wide", host="h000") as profile:
        one = tool.partial(profile, tool.validated({}))
    names = [f"h{number:03d}" for number in range(hosts)]
    expected = tool.combine([(name, one) for name in names], tool.validated({}), "json")
    question = {"session_id": "wide", "tool_name": tool.name}
    held = HeldTool(monkeypatch, tool.name, free=hosts // 3)
    with (
        server_here(wide_logdir, hosts_at_once=2) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
    ):

        def has_ended():
            return server.analysis.gate.running == 0

        for timeout in growing():
            with pytest.raises(grpc.RpcError) as caught:
                client.call("GetSessionToolData", timeout=timeout, **question)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            until(has_ended, "the work ends")
            if held.held:
                break
        decoded = metric(server, "peakline_cache_misses_total")
        assert hosts // 3 <= decoded < hosts
        # One who hangs up ends it as well.
        before = len(held.held)
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=HANG_S)
        connection.request("GET", f"/api/sessions/wide/tools/{tool.name}")
        until(lambda: len(held.held) > before, "it goes on")
        connection.close()
        until(has_ended, "the work ends again")
        assert metric(server, "peakline_cache_misses_total") < hosts
        held.let_go()
        answer = client.call("GetSessionToolData", timeout=HANG_S, **question)
        assert (answer.output, answer.error_message) == (expected, "")
        assert metric(server, "peakline_cache_misses_total") == hosts
