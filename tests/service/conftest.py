"""A repository of real sessions, and servers over it that end with the test."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.peers import Peer, answer_of, peer
from tests.capture.requests import good, no_pauses
from tests.service.grpc_client import Client
from tests.waiting import HANG_S

from peakline.engine import Engine
from peakline.service import core
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.background import WarmUp
from peakline.service.core import Analysis
from peakline.service.prometheus import PrometheusMetrics
from peakline.service.settings import Settings

if TYPE_CHECKING:
    from tests.service.http_client import Face

SESSIONS = {
    "tf2_cnn": "2026_11_20_16_57_05",
    "jax_captured": "2026_11_20_17_04_52",
    "tf2_two_devices": "2026_11_20_17_20_26",
    "tf2_multihost": "2026_11_20_17_33_46",
}
"""Sample log directories and the one session in each; the last is the newest and has two hosts."""


@dataclass(frozen=True)
class Parts:
    """What a face is made of."""

    settings: Settings
    access: Access
    engine: Engine
    metrics: PrometheusMetrics
    analysis: Analysis
    log: AccessLog
    log_path: Path

    def log_lines(self) -> list[dict[str, Any]]:
        from tests.service.http_client import whole_lines

        return whole_lines(self.log_path)


@pytest.fixture(scope="session", autouse=True)
def everything_imported() -> None:
    """What a server imports while it warms up is imported before a test starts one in this process.

    pytest parses what is imported, to explain assertions, and Python 3.11 cannot parse in two
    threads at a time (its parser counts the depth of both together).
    """
    warm_up = WarmUp(lambda: None)
    warm_up.start()
    assert warm_up.wait(HANG_S)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    no_pauses(monkeypatch)


@pytest.fixture(autouse=True)
def lists_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list has all the time of its caller: what it tells depends on no machine's pace."""
    monkeypatch.setattr(core, "_LOOKING_S", HANG_S)


@pytest.fixture(scope="session")
def sample_logdir(sessions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One log directory with the sessions of several samples; not to be written into."""
    logdir = tmp_path_factory.mktemp("logs")
    for sample in SESSIONS:
        shutil.copytree(sessions / sample, logdir, dirs_exist_ok=True)
    return logdir


@pytest.fixture
def logdir(sample_logdir: Path, tmp_path: Path) -> Path:
    """A log directory of the test's own, with the sessions of several samples."""
    own = tmp_path / "logs"
    shutil.copytree(sample_logdir, own)
    return own


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A log directory without sessions."""
    logdir = tmp_path / "empty"
    logdir.mkdir()
    return logdir


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Callable[..., Parts]]:
    """Make what a face is made of: ``parts(logdir, max_concurrent=1)``."""
    made: list[Parts] = []

    def make(*roots: Path | str, **settings: Any) -> Parts:
        chosen = Settings(
            roots=tuple(map(str, roots)), **{"grpc_port": 0, "http_port": 0} | settings
        )
        log_path = tmp_path / f"access-{len(made)}.log"
        access, metrics = Access(chosen), PrometheusMetrics()
        engine = Engine(max_unpacked_bytes=chosen.max_unpacked_bytes)
        analysis = Analysis(chosen, access=access, engine=engine, metrics=metrics)
        log = AccessLog(str(log_path), hide=access.without_tokens)
        made.append(Parts(chosen, access, engine, metrics, analysis, log, log_path))
        return made[-1]

    yield make
    for one in made:
        one.log.close()
        one.engine.close()


@dataclass(frozen=True)
class Served:
    """A running gRPC server, what it is made of, and a client of it."""

    server: Any
    parts: Parts
    client: Client

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"


@pytest.fixture
def serve(parts: Callable[..., Parts]) -> Iterator[Callable[..., Served]]:
    """Start a gRPC server: ``serve(logdir, token="...")``."""
    from peakline.service.grpc_server import start_grpc

    running: list[Served] = []

    def start(*roots: Path | str, **settings: Any) -> Served:
        made = parts(*roots, **settings)
        server = start_grpc(made.settings, made.analysis, made.access, made.log, made.metrics)
        running.append(Served(server, made, Client(f"127.0.0.1:{server.port}")))
        return running[-1]

    yield start
    for served in running:
        served.client.close()
        served.server.stop(0)


@pytest.fixture(scope="session")
def shared_face(sample_logdir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Face]:
    """An HTTP server of the samples' sessions, for questions that change nothing."""
    from tests.service.http_client import serving

    with serving(tmp_path_factory.mktemp("http"), sample_logdir) as face:
        yield face


@dataclass
class Capturing:
    """An HTTP server that may reach profilers: ``a``, which is also ``localhost``, behaves as a
    test says, ``b`` records nothing, and ``nobody`` is not there.
    """

    face: Face
    profiles: Path
    job: Peer
    nobody: str
    behave: Callable[..., bytes] = good

    @property
    def sessions(self) -> list[str]:
        """The sessions there are, with those that are being made."""
        return sorted(place.name for place in self.profiles.iterdir())


@pytest.fixture(scope="module")
def capturing_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Capturing]:
    from tests.service.http_client import serving

    place = tmp_path_factory.mktemp("capturing")
    profiles = place / "logs" / "plugins" / "profile"
    profiles.mkdir(parents=True)

    def behave(*arguments: Any) -> bytes:
        return made.behave(*arguments)

    with (
        peer(behave) as job,
        peer(lambda *_: answer_of(empty_trace=True)) as empty,
        socket.socket() as bound,
    ):
        bound.bind(("127.0.0.1", 0))  # and not listening: nobody answers
        nobody = f"localhost:{bound.getsockname()[1]}"
        workers = {"a": job.address, "b": empty.address, "nobody": nobody}
        port = int(job.address.rpartition(":")[2])
        with serving(place, place / "logs", workers=workers, profiler_port=port) as face:
            made = Capturing(face, profiles, job, nobody)
            yield made


@pytest.fixture
def capturing(capturing_server: Capturing) -> Iterator[Capturing]:
    capturing_server.job.requests.clear()
    yield capturing_server
    capturing_server.behave = good


@pytest.fixture
def unchanged(sample_logdir: Path) -> Iterator[None]:
    """What `shared_face` serves is the same after the test."""
    before = sorted(sample_logdir.rglob("*"))
    yield
    assert sorted(sample_logdir.rglob("*")) == before


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that nobody listens on: it is bound, so that nobody else gets it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
