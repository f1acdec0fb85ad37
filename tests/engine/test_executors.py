"""Hosts asked in threads, processes and on a Dask cluster: the same bytes, the same failures."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA, session_of
from tests.waiting import HANG_S, EndedDeadline, until

from peakline.deadline import check_deadline, within
from peakline.engine import Engine, check_executor, make_executor, work
from peakline.engine.executors import Processes, fan_out
from peakline.engine.work import HostTask, NoWorkersError, reply, request, understood
from peakline.errors import (
    CancelledError,
    DeadlineError,
    InputError,
    RemoteError,
    UnforeseenError,
    UsageError,
)
from peakline.tools import find_tool

MULTIHOST = DATA / "sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46"
ONE = MULTIHOST / "localhost_47507.xplane.pb"
OTHER = MULTIHOST / "localhost_56665.xplane.pb"
TOOLS = [("memory_profile", "proto"), ("memory_findings", "json"), ("step_breakdown", "csv")]


@pytest.fixture
def three(tmp_path):
    return session_of(
        tmp_path / "three",
        {f"{h}.xplane.pb": s for h, s in zip("abc", (ONE, OTHER, ONE), strict=True)},
    )


@pytest.fixture
def broken(tmp_path):
    """Two hosts that are whole, one cut off, and one that is no profile."""
    session = session_of(
        tmp_path / "broken",
        {f"{h}.xplane.pb": s for h, s in zip("abcd", (ONE, OTHER, ONE, ONE), strict=True)},
    )
    os.truncate(session.host("b").path, 60_000)
    with open(session.host("c").path, "wb") as file:  # noqa: PTH123
        file.write(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" * 9)
    return session


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp://",
        # Without an address it is a port of a number that somebody else may have.
        dashboard_address="127.0.0.1:0",
    ) as result:  # fmt: skip
        yield result.scheduler_address


@pytest.fixture(scope="module", params=["processes", "dask"])
def elsewhere(request):
    """An engine that asks hosts anywhere but here."""
    scheduler = request.getfixturevalue("cluster") if request.param == "dask" else None
    with Engine(executor=request.param, workers=2, scheduler=scheduler) as engine:
        yield engine


class TestAnswers:
    @pytest.mark.parametrize(("tool", "form"), TOOLS)
    def test_they_are_those_of_threads(self, elsewhere, three, tool, form):
        here = Engine().tool(three, tool, format=form)
        assert elsewhere.tool(three, tool, format=form) == here
        assert here.notes == ()

    def test_so_are_failures_and_warnings(self, elsewhere, broken):
        here = Engine().tool(broken, "memory_findings")
        assert elsewhere.tool(broken, "memory_findings") == here
        (note,) = here.notes
        assert note.startswith("host c: ")
        assert any(w.kind == "truncated" and w.detail.startswith("b: ") for w in here.warnings)

    def test_when_all_fail_the_error_is_the_same(self, elsewhere, three):
        for host in three.hosts():
            os.truncate(host.path, 5)
        result = []
        for engine in (Engine(), elsewhere):
            with pytest.raises(InputError) as failed:
                engine.tool(three, "memory_profile")
            result.append((type(failed.value), str(failed.value)))
        assert result[0] == result[1]

    def test_one_host_is_asked_here(self, three):
        with Engine(executor="dask", scheduler="tcp://127.0.0.1:1") as engine:
            assert engine.tool(three, "memory_profile", host="a").notes == ()

    def test_the_deadline_ends_it(self, elsewhere, three):
        deadline = EndedDeadline()
        deadline.end()
        with within(deadline), pytest.raises(DeadlineError):
            elsewhere.tool(three, "memory_profile")
        assert elsewhere.tool(three, "memory_profile").notes == ()


_BUSY = """
import pickle, time
from peakline.engine.executors import _Worker

class Sleep:
    def __reduce__(self):
        return time.sleep, (600,)

worker = _Worker()
print(worker.process.pid, flush=True)
worker.ask(pickle.dumps(Sleep()))
"""


class Fatal:
    """What ends the process that reads it."""

    def __reduce__(self):
        return exec, ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)",)


def fatal(host):
    """What makes tasks, of which that for ``host`` ends its worker."""

    def make(tool, file, question, *more):
        return HostTask(tool, file, Fatal() if file.host == host else question, *more)

    return make


def running(pid: int) -> bool:
    """Whether it does anything yet; what ended may be there until somebody takes note of it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.fixture(scope="module")
def one_at_work():
    """An engine with one process, whatever became of the one before it."""
    with Engine(executor="processes", workers=1, answers_bytes=0) as engine:
        yield engine


@pytest.fixture
def worker(one_at_work, three):
    """Its process, which has nothing to do."""
    if not one_at_work.executor._idle:
        one_at_work.tool(three, "memory_profile")
    (result,) = one_at_work.executor._idle
    return result


class TestProcesses:
    def test_a_worker_that_is_killed_loses_nothing(self, one_at_work, worker, three):
        # Stopped it cannot answer: it is killed in the middle of its work.
        os.kill(worker.process.pid, signal.SIGSTOP)
        with ThreadPoolExecutor(1) as pool:
            request = pool.submit(one_at_work.tool, three, "memory_profile")
            until(lambda: worker._is_busy)
            os.kill(worker.process.pid, signal.SIGKILL)
            answer = request.result(HANG_S)
        assert answer == Engine().tool(three, "memory_profile")
        assert answer.notes == ()

    def test_a_host_that_ends_two_is_one_line_and_the_rest_is_there(
        self, one_at_work, three, monkeypatch
    ):
        started = []
        taken = one_at_work.executor._take
        monkeypatch.setattr(one_at_work.executor, "_take", lambda: (started.append(1), taken())[1])
        monkeypatch.setattr("peakline.engine.engine.HostTask", fatal("b"))
        answer = one_at_work.tool(three, "memory_profile")
        (note,) = answer.notes
        assert note == (
            "host b: the process that worked on it was ended by SIGKILL (out of memory?), as the "
            "one before it"
        )
        assert len(started) == 4
        monkeypatch.undo()
        assert one_at_work.tool(three, "memory_profile").notes == ()

    def test_one_that_was_killed_while_idle_is_replaced(self, one_at_work, worker, three):
        worker.process.kill()
        worker.process.wait()
        assert one_at_work.tool(three, "memory_profile").notes == ()
        assert one_at_work.executor._idle != [worker]

    @pytest.mark.parametrize(("end", "error"), [("end", DeadlineError), ("cancel", CancelledError)])
    def test_whoever_waits_no_longer_ends_the_process(self, one_at_work, worker, three, end, error):
        deadline = EndedDeadline()
        os.kill(worker.process.pid, signal.SIGSTOP)
        ender = threading.Thread(
            target=lambda: (until(lambda: worker._is_busy), getattr(deadline, end)())
        )
        ender.start()
        with within(deadline), pytest.raises(error):
            one_at_work.tool(three, "memory_profile")
        ender.join(HANG_S)
        assert not running(worker.process.pid)
        assert one_at_work.executor._idle == []

    def test_none_outlives_the_engine(self, three):
        with Engine(executor="processes", workers=2) as engine:
            engine.tool(three, "memory_profile")
            pids = [worker.process.pid for worker in engine.executor._idle]
            assert 1 <= len(pids) <= 2
        assert [pid for pid in pids if running(pid)] == []

    @pytest.mark.usefixtures("uncollected")
    def test_nor_one_that_nobody_closed(self, three):
        engine = Engine(executor="processes", workers=1)
        engine.tool(three, "memory_profile")
        (worker,) = engine.executor._idle
        del engine
        assert not running(worker.process.pid)

    @pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
    def test_nor_the_program_whatever_the_worker_does(self, signum):
        program = subprocess.Popen(
            [sys.executable, "-c", _BUSY], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        pid = int(program.stdout.readline())
        assert running(pid)
        program.send_signal(signum)
        program.wait(HANG_S)
        program.stdout.close()
        until(lambda: not running(pid))

    def test_a_fault_of_ours_is_told_as_such(self, one_at_work, three, monkeypatch):
        monkeypatch.setattr("peakline.engine.executors.request", lambda _: b"no pickle")
        with pytest.raises(UnforeseenError, match="a worker: unexpected UnpicklingError") as raised:
            one_at_work.tool(three, "memory_profile")
        assert raised.value.trace.startswith("Traceback")

    def test_without_a_python_there_are_no_workers(self, three, monkeypatch, tmp_path):
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        with Engine(executor="processes") as engine, pytest.raises(NoWorkersError):
            engine.tool(three, "memory_profile")


class TestFanOut:
    def test_what_ends_one_ends_all(self):
        begun = threading.Event()

        def ask(host):
            if host == "ends":
                begun.wait(HANG_S)
                raise DeadlineError("over")
            begun.set()
            while True:
                check_deadline()
                time.sleep(0.001)

        with pytest.raises(DeadlineError, match="over"):
            fan_out(ask, ["ends", "goes on"], 2)

    def test_no_more_at_once_than_wanted(self):
        lock, three, at_once, seen = threading.Lock(), threading.Barrier(3), 0, set()

        def ask(_):
            nonlocal at_once
            with lock:
                at_once += 1
                seen.add(at_once)
            three.wait(HANG_S)
            with lock:
                at_once -= 1
            three.wait(HANG_S)

        fan_out(ask, list(range(12)), 3)
        assert seen == {1, 2, 3}

    def test_every_host_that_is_done_is_told(self):
        def ask(host):
            if host == 1:
                raise InputError("no")
            return host

        answer = []
        result = fan_out(ask, [0, 1, 2], 2, answer.append)
        assert sorted(answer) == [0, 1, 2]
        assert [str(one) for one in result] == ["0", "no", "2"]


class TestMade:
    @each_row(
        ("name", "workers", "scheduler", "message"),
        [
            ("fork", None, None, r"no executor 'fork'; there is: threads, processes, dask"),
            ("threads", 0, None, "workers 0: at least 1"),
            ("processes", None, "tcp://a:1", "a scheduler is for the executor dask, not for"),
        ],
    )
    def test_what_is_wrong_is_told(self, name, workers, scheduler, message):
        with pytest.raises(UsageError, match=message):
            check_executor(name, workers, scheduler)
        with pytest.raises(UsageError, match=message):
            Engine(executor=name, workers=workers, scheduler=scheduler)

    def test_nothing_is_started_before_somebody_asks(self):
        assert make_executor("processes", workers=3)._idle == []
        assert make_executor("dask", workers=3)._open == []

    def test_an_executor_of_ones_own(self, three):
        request = []

        class Noting(Processes):
            def ask(self, task, here):
                request.append((task.file.host, task.format))
                return here()

        assert Engine(executor=Noting(1)).tool(three, "step_breakdown").notes == ()
        assert sorted(request) == [("a", ""), ("b", ""), ("c", "")]


class TestDask:
    @each_row("address", ["nowhere", "foo://a:1", "tcp://a:b"])
    def test_what_is_no_address_is_refused(self, address):
        pytest.importorskip("distributed")
        with pytest.raises(UsageError, match=r"write tcp://HOST:PORT"):
            make_executor("dask", scheduler=address).start()

    def test_a_scheduler_that_is_not_there(self, three, monkeypatch):
        pytest.importorskip("distributed")
        monkeypatch.setattr("peakline.engine.dask_cluster._CONNECTING_S", 0.2)
        with (
            Engine(executor="dask", scheduler="tcp://127.0.0.1:1") as engine,
            pytest.raises(
                RemoteError, match=r"scheduler tcp://127.0.0.1:1 cannot be reached"
            ) as no,
        ):
            engine.tool(three, "memory_profile")
        assert "\n" not in str(no.value)

    def test_without_dask_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(UsageError, match=r"pip install 'peakline\[dask\]'"):
            make_executor("dask").start()

    def test_so_many_at_once_as_the_cluster_has_threads(self, cluster):
        executor = make_executor("dask", scheduler=cluster)
        try:
            assert executor.workers == 2
        finally:
            executor.close()

    def test_nobody_else_reaches_a_cluster_of_its_own(self, monkeypatch):
        """Who may send to a scheduler runs code as its user. Here in threads, which is quicker."""
        distributed = pytest.importorskip("distributed")
        local = partial(distributed.LocalCluster, processes=False)
        monkeypatch.setattr(distributed, "LocalCluster", local)
        executor = make_executor("dask", workers=1)
        try:
            executor.start()
            address = executor._open[0].scheduler.address
            assert address.startswith("tls://127.0.0.1:")
            for security in (None, distributed.Security.temporary()):
                with pytest.raises((OSError, TypeError)):
                    distributed.Client(address, security=security, timeout=HANG_S)
            assert executor.workers == 1
            local = executor._open[1]
            servers = [local.scheduler, *local.workers.values()]
            for port in [one.http_server.port for one in servers]:
                answer = httpx.get(f"http://127.0.0.1:{port}/json/identity.json")
                assert answer.status_code == 404
        finally:
            executor.close()

    @pytest.mark.nightly
    def test_workers_that_are_killed_lose_nothing(self, three, monkeypatch):
        """Processes of a scheduler that gives a host up with the second worker that it ends."""
        pytest.importorskip("distributed")
        here = Engine().tool(three, "memory_profile")
        with Engine(executor="dask", workers=2, answers_bytes=0) as engine:
            engine.executor.start()
            client, cluster = engine.executor._open
            pids = [nanny.process.pid for nanny in cluster.workers.values()]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            with ThreadPoolExecutor(1) as pool:
                request = pool.submit(engine.tool, three, "memory_profile")
                busy = lambda: sum(  # noqa: E731
                    bool(one.processing) for one in cluster.scheduler.workers.values()
                )
                until(lambda: busy() == 2)
                os.kill(pids[0], signal.SIGKILL)
                os.kill(pids[1], signal.SIGCONT)
                assert request.result(HANG_S) == here
            monkeypatch.setattr("peakline.engine.engine.HostTask", fatal("b"))
            answer = engine.tool(three, "memory_profile")
            (note,) = answer.notes
            assert note == (
                "host b: on the Dask cluster: the workers that worked on it were lost, one after "
                "the other (out of memory?)"
            )
            assert client.status == "running"

    def test_a_worker_of_another_version_is_told(self, three, monkeypatch):
        versions = iter(["0.0.1"])
        monkeypatch.setattr(work, "_version", lambda: next(versions, "9.9"))
        task = HostTask("memory_profile", three.host("a"), None, "json")
        with pytest.raises(RemoteError, match=r"the worker has Peakline 9.9, the one who asks 0.0"):
            understood(reply(request(task)))


def test_the_time_that_is_left_goes_along(three):
    question = find_tool("memory_profile").validated({})
    task = HostTask("memory_profile", three.host("a"), question, "json")
    deadline = EndedDeadline()
    with within(deadline):
        in_time = request(task)
        # Over between the look and the writing of it: the worker finds it so.
        deadline.check = deadline.end
        late = request(task)
    assert understood(reply(in_time)).content
    with pytest.raises(DeadlineError):
        understood(reply(late))
