"""Our reading of a log directory against XProf's, over what JAX and TensorFlow really write."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from peakline.repository import Repository

pytestmark = pytest.mark.conformance

SCRIPT = Path(__file__).parent / "peers" / "list_runs.py"


@pytest.fixture(scope="module")
def peers():
    python = os.environ.get("PEAKLINE_PEERS_PYTHON")
    if not python:
        pytest.skip("PEAKLINE_PEERS_PYTHON does not name the peers' interpreter")

    def run(*words):
        done = subprocess.run(
            [python, str(SCRIPT), *map(str, words)], check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


@pytest.fixture(scope="module")
def written(peers, tmp_path_factory):
    """A log directory with a session of JAX, and the run "train" of TensorFlow."""
    logdir = tmp_path_factory.mktemp("logs")
    peers("write", logdir)
    return logdir


def ours(logdir):
    return {run.name: [file.host for file in run.hosts()] for run in Repository(logdir).runs()}


def test_what_jax_and_tensorflow_write(peers, written):
    found = ours(written)
    assert sorted(name.count("/") for name in found) == [0, 1]
    assert found == json.loads(peers("list", written).splitlines()[-1])


def test_what_xprof_leaves_behind_is_ignored(peers, written):
    before = ours(written)
    for run in Repository(written).runs():
        # Names that its converters and its server give their files.
        for name in ("ALL_HOSTS.op_stats_v2.pb", "vm.SSTABLE", ".cached_tools.json"):
            (Path(run.path) / name).write_bytes(b"x")
    assert ours(written) == before
    assert json.loads(peers("list", written).splitlines()[-1]) == before


def test_a_session_of_ours(peers, tmp_path):
    with Repository(tmp_path).create_session("2026_11_20_17_02_06") as session:
        session.write("localhost:9012", lambda stream: stream.write(b""))
        session.write("worker.example.com", lambda stream: stream.write(b""))
    assert json.loads(peers("list", tmp_path).splitlines()[-1]) == ours(tmp_path)


def test_the_samples(peers, sessions):
    theirs = json.loads(peers("list", sessions).splitlines()[-1])
    found = ours(sessions)
    # XProf does not read compressed files and shows such a run without hosts.
    assert theirs.keys() == found.keys()
    assert all(not hosts or hosts == found[name] for name, hosts in theirs.items())
