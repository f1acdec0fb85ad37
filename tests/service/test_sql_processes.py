"""SQL over HTTP that takes all it can get: an error in time, and everybody else is answered."""

import json
import os
import random
import re
import signal
import socket

import httpx
import pytest
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem
from tests.service.nasty_queries import (
    REPLACED,
    REPLACED_BY_PATTERN,
    UNIONS,
    nasty_query,
    tables_of_tables,
)
from tests.service.process_numbers import children_of, costs_of, costs_of_process, metric, tell
from tests.service.server_process import running_server
from tests.waiting import HANG_S, until

SQL = f"/api/sessions/{SESSIONS['tf2_cnn']}/sql"
MIB = 1 << 20
MEMORY = 128 * MIB
SLACK = 256 * MIB
PYTHON = 200 * MIB
"""What Python and the libraries take of memory, at most."""
ENDLESS = "select count(*) from range(10000000) a, range(10000000) b where a.range * b.range = 7"
LIMITS = ("--sql-memory", MEMORY, "--max-concurrent", 4, "--access-log", "off")


class Asked:
    """A server that runs beside, and what it answers."""

    def __init__(self, server):
        self.server = server
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{server.http_port}", timeout=HANG_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def ask(self, query):
        return self.client.post(SQL, json={"query": query})

    def answers(self):
        """That it does: a short timeout may be over before a new process has begun."""
        until(lambda: self.ask("select 1 as a").status_code == 200)
        assert self.ask("select 1 as a").json() == [{"a": 1}]

    def begin(self, query, *others):
        """A connection on which the answer to ``query`` is worked on, and the process that does,
        which is none of the ``others``.
        """
        before = children_of(self.server)
        body = json.dumps({"query": query})
        connection = socket.create_connection(("127.0.0.1", self.server.http_port), HANG_S)
        connection.sendall(
            f"POST {SQL} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        worked = []

        def is_at_work():
            now = children_of(self.server)
            # A new one has loaded what it needs after a second of work.
            worked[:] = [
                pid for pid in now.keys() - {*others} if now[pid] > before.get(pid, 100) + 20
            ]
            return worked

        until(is_at_work)
        return connection, worked[0]

    def costs(self):
        """That nobody has taken more than is allowed."""
        children = children_of(self.server)
        assert len(children) <= 4
        for pid in children:
            try:
                peak = costs_of_process(pid).peak
            except FileNotFoundError:
                continue  # ended
            assert peak < MEMORY + SLACK + PYTHON
        return costs_of(self.server).peak


@pytest.fixture(scope="module")
def hurried(sample_logdir):
    """A server whose requests may take three seconds."""
    with (
        running_server(sample_logdir, "--request-timeout", "3s", *LIMITS, warms_up=False) as server,
        Asked(server) as request,
    ):
        request.answers()
        yield request


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(REPLACED, id="replace"),
        pytest.param(REPLACED_BY_PATTERN, id="regexp_replace", marks=pytest.mark.nightly),
        pytest.param(tables_of_tables(25), id="tables of tables", marks=pytest.mark.nightly),
        pytest.param(UNIONS, id="unions", marks=pytest.mark.nightly),
    ],
)
def test_a_query_that_takes_all_is_ended(hurried, query):
    before = hurried.costs()
    answer = hurried.ask(query)
    code = {400: "FAILED_PRECONDITION", 504: "DEADLINE_EXCEEDED"}[answer.status_code]
    detail = problem(answer, answer.status_code, code)
    assert re.search("memory than its limit|takes too much memory|time for this answer", detail)
    # The text of the query has a megabyte, and is held a few times.
    assert hurried.costs() - before < 100 * MIB
    hurried.answers()


@pytest.mark.soak
def test_many_that_take_all_are_ended(hurried):
    seed = random.SystemRandom().randrange(1 << 32)
    tell(f"seed {seed}")
    chance, codes = random.Random(seed), {}
    for _ in range(200):
        query = nasty_query(chance)
        answer = hurried.ask(query)
        codes[answer.status_code] = codes.get(answer.status_code, 0) + 1
        assert answer.status_code in {200, 400, 413, 504}, (seed, query[:1000], answer.text)
        if answer.status_code != 200:
            problem(answer, answer.status_code, answer.json()["code"])
        hurried.answers()
        hurried.costs()
    tell(codes)
    assert hurried.costs() < 600 * MIB


def test_a_stuck_query_holds_up_nobody(sample_logdir):
    with running_server(sample_logdir, *LIMITS, warms_up=False) as server, Asked(server) as request:
        request.answers()
        stuck, one = request.begin(ENDLESS)
        other, two = request.begin(UNIONS, one)
        request.answers()
        # A caller goes away, and with it what was worked on.
        stuck.close()
        until(lambda: one not in children_of(server))
        until(lambda: metric(server, 'peakline_sql_processes_ended_total{reason="cancelled"}'))
        # A process is ended by somebody else.
        os.kill(two, signal.SIGKILL)
        with other:
            said = b"".join(iter(lambda: other.recv(1 << 16), b"")).decode()
        assert said.startswith("HTTP/1.1 503 ")
        document = json.loads(said.partition("\r\n\r\n")[2])
        assert document["code"] == "UNAVAILABLE"
        assert document["detail"] == "the process of the query was ended by SIGKILL; try again"
        assert "retry-after: 1" in said.lower()
        request.answers()
        assert metric(server, 'peakline_sql_processes_ended_total{reason="lost"}') == 1
        assert metric(server, "peakline_sql_processes") >= 1
        # The server is, in the middle of a query.
        last, three = request.begin(ENDLESS)
        left = children_of(server)
        assert three in left
        server.end(signal.SIGKILL)
        for pid in left:
            until(lambda pid=pid: not is_there(pid))
        last.close()


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 (gone at once)
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_server_that_ends_leaves_no_process(sample_logdir):
    with running_server(sample_logdir, *LIMITS) as server, Asked(server) as request:
        until(lambda: children_of(server))  # of its warming up
        request.answers()
        left = children_of(server)
        assert server.end() == 0
        assert [pid for pid in left if is_there(pid)] == []
