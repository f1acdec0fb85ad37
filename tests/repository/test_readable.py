"""Directories without sessions in which files lie that can be read."""

import gzip
import os

import fsspec
import pytest
from tests.repository.places import put

from peakline.errors import InputError, UsageError
from peakline.repository import resolve, resolve_hosts

OOM = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total \
capacity of 15.77 GiB of which 1.44 GiB is free. Of the allocated memory 13.20 GiB is allocated by \
PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.\n"


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    """A directory, and what puts a file into it."""
    if request.param == "local":
        logs = tmp_path / "logs"
        yield str(logs), lambda name, content: put(logs, name, content=content)
        return
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield (
        "memory://bucket/logs",
        lambda name, content: system.pipe_file(f"/bucket/logs/{name}", content),
    )
    system.store.clear()


def put_others(put_there):
    """What can not be read."""
    put_there("config.json", b'{"lr": 0.1}')
    put_there("notes.txt", b"nothing of memory\n")
    put_there("weights.pb.zip", b"PK\x03\x04")
    put_there(".hidden.json", b'{"traceEvents": []}')
    put_there("README.md", OOM)
    put_there("empty.json", b"")
    put_there("cut.json.gz", b"\x1f\x8b")
    put_there("deeper/trace.json", b'{"traceEvents": []}')


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("trace.json", b'{"traceEvents": []}', "chrome_trace"),
        ("trace.json.gz", gzip.compress(b'{"traceEvents": []}', mtime=0), "chrome_trace"),
        ("snapshot.pickle", b"\x80\x04}q\x00.", "torch_snapshot"),
        ("train.log", b"step 1\n" * 100_000 + OOM, "log"),
        ("train.err.gz", gzip.compress(b"step 1\n" * 100_000 + OOM, mtime=0), "log"),
        # Nobody can be called so, but the file can be read.
        ("-rank.17.pt.trace.json", b'{"traceEvents": []}', "chrome_trace"),
    ],
)
def test_the_only_file_that_can_be_read_is_taken(place, name, content, form):
    path, put_there = place
    put_others(put_there)
    put_there(name, content)
    noted = []
    assert resolve_hosts(path, only=noted.append) == resolve(path) == f"{path}/{name}"
    assert [str(one) for one in noted] == [f"{name} ({form})"]
    with pytest.raises(InputError, match="no sessions here"):
        resolve(path, host="a")
    with pytest.raises(InputError, match="no sessions here"):
        resolve(path, session="a")


def test_of_several_one_has_to_be_named(place):
    path, put_there = place
    put_others(put_there)
    put_there("b.json", b'{"traceEvents": []}')
    put_there("a.pickle", b"\x80\x04}q\x00.")
    with pytest.raises(
        UsageError,
        match=r"logs: no session here, but 2 files that can be read: a\.pickle \(torch_snapshot\), "
        r"b\.json \(chrome_trace\); name one$",
    ):
        resolve(path)


def test_none_that_can_be_read(place):
    path, put_there = place
    put_others(put_there)
    with pytest.raises(InputError, match="no sessions here; expected HOST"):
        resolve(path)


def test_a_session_counts_before_other_files(place):
    path, put_there = place
    put_there("trace.json", b'{"traceEvents": []}')
    put_there("plugins/profile/s/vm.xplane.pb", b"")
    assert resolve(path).endswith("s/vm.xplane.pb")


def test_what_is_no_regular_file_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no sessions here"):
        resolve(str(tmp_path))


def test_only_so_many_files_are_looked_at(tmp_path):
    put(tmp_path, *(f"{number:03}.json" for number in range(64)), content=b"{}")
    put(tmp_path, "zz.json", content=b'{"traceEvents": []}')
    with pytest.raises(InputError, match="no sessions here"):
        resolve(str(tmp_path))


def test_a_bomb_does_not_go_off(tmp_path, monkeypatch):
    monkeypatch.setattr("peakline.repository.readable._LOG_BYTES", 1 << 20)
    put(tmp_path, "a.log.gz", content=gzip.compress(b"step\n" * (2 << 20) + OOM))
    with pytest.raises(InputError, match="no sessions here"):
        resolve(str(tmp_path))
