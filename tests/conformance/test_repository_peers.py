"""Our reading of a log directory against XProf's, over what JAX and TensorFlow really write."""

from pathlib import Path

import pytest

from peakline.repository import Repository
from tests.conformance.peer import Peer

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def peers():
    program = Peer("list_runs.py")
    yield program
    program.close()


@pytest.fixture(scope="module")
def written(peers, tmp_path_factory):
    """A log directory with a session of JAX, and the run "train" of TensorFlow."""
    logdir = tmp_path_factory.mktemp("logs")
    peers.ask({"write": str(logdir)})
    return logdir


def ours(logdir):
    return {run.name: [file.host for file in run.hosts()] for run in Repository(logdir).runs()}


def test_what_jax_and_tensorflow_write(peers, written):
    found = ours(written)
    assert sorted(name.count("/") for name in found) == [0, 1]
    assert found == peers.ask({"list": str(written)})


def test_what_xprof_leaves_behind_is_ignored(peers, written):
    before = ours(written)
    for run in Repository(written).runs():
        # Names that its converters and its server give their files.
        for name in ("ALL_HOSTS.op_stats_v2.pb", "vm.SSTABLE", ".cached_tools.json"):
            (Path(run.path) / name).write_bytes(b"x")
    assert ours(written) == before
    assert peers.ask({"list": str(written)}) == before


def test_a_session_of_ours(peers, tmp_path):
    with Repository(tmp_path).create_session("2026_11_20_17_02_06") as session:
        session.write("localhost:9012", lambda stream: stream.write(b""))
        session.write("worker.example.com", lambda stream: stream.write(b""))
    assert peers.ask({"list": str(tmp_path)}) == ours(tmp_path)


def test_the_samples(peers, sessions):
    theirs = peers.ask({"list": str(sessions)})
    found = ours(sessions)
    # XProf does not read compressed files and shows such a run without hosts.
    assert theirs.keys() == found.keys()
    assert all(not hosts or hosts == found[name] for name, hosts in theirs.items())
