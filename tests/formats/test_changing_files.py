"""Files that are cut, written over, replaced or appended to while they are read."""

import faulthandler
import gzip
import mmap
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.engine.ending import DATA, session_of
from tests.formats.format_samples import samples

import peakline
from peakline.engine import Engine
from peakline.errors import InputError, PeaklineError
from peakline.formats.common import files
from peakline.formats.common.files import SourceFile
from peakline.kernels import bus_errors
from peakline.schema import GraphDef

SHORTER = "the file became shorter while it was read; try again"
WRITTEN = "the file was written while it was read; try again"
XSPACE = DATA / "sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
GRAPH_ROWS = 60_000


@pytest.fixture(params=["copied", "mapped"])
def held(request, monkeypatch):
    """How files that are wanted as a whole are held; what is small is held on the disk too."""
    monkeypatch.setattr(files, "_HEAD_BYTES", 4096)
    if request.param == "mapped":
        monkeypatch.setattr(files, "_MOST_COPIED", 0)
    return request.param


@cache
def written_graph():
    """A GraphDef of some MB."""
    message = GraphDef()
    for k in range(GRAPH_ROWS):
        message.node.add(name=f"scope/node_{k}", op="Add", input=[f"scope/node_{k - 1}"])
    return message.SerializeToString()


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.pb"
    path.write_bytes(written_graph())
    return path


def rewrite(path, content):
    """In place, as ``rsync --inplace`` does."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


@pytest.mark.usefixtures("held")
def test_a_file_that_is_cut_is_one_error(graph):
    with peakline.open(graph) as profile:
        assert profile.columns("nodes", frozenset(("name",))).rows == GRAPH_ROWS
        os.truncate(graph, 100)
        with pytest.raises(InputError) as error:
            profile.columns("edges")
        assert str(error.value) == f"{graph}: {SHORTER}"


def test_every_byte_of_a_map_can_go_while_it_is_read(held, graph):
    file = SourceFile(str(graph))
    whole = file.buffer.tobytes()
    for size in (len(whole) - 1, len(whole) // 2, 1, 0):
        buffer = file.buffer
        os.truncate(graph, size)
        # Without the guard this ends the process.
        assert buffer.size == len(whole)
        assert buffer[:size].tobytes() == whole[:size]
        total = int(np.add.reduce(buffer, dtype=np.int64))
        assert (total == sum(whole)) == (held == "copied" or size == len(whole))
        with pytest.raises(InputError, match=SHORTER):
            file.check()
        graph.write_bytes(whole)
        file.close()
        file = SourceFile(str(graph))
    file.close()


def test_a_file_that_is_cut_and_grows_again_is_void(graph, monkeypatch):
    monkeypatch.setattr(files, "_MOST_COPIED", 0)
    file = SourceFile(str(graph))
    content, status = file.buffer, graph.stat()
    whole = content.tobytes()
    os.truncate(graph, 0)
    assert content[-1] == 0
    graph.write_bytes(whole)
    os.utime(graph, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InputError, match=WRITTEN):
        file.check()
    file.close()


@pytest.mark.usefixtures("held")
def test_a_file_that_is_written_over_is_one_error(graph):
    content = graph.read_bytes()
    with peakline.open(graph) as profile:
        rewrite(graph, bytes(reversed(content)))
        with pytest.raises(InputError) as error:
            profile.columns("nodes")
        assert str(error.value) == f"{graph}: {WRITTEN}"


@pytest.mark.usefixtures("held")
def test_a_file_that_is_written_over_and_grows_is_one_error(graph):
    content = graph.read_bytes()
    with peakline.open(graph) as profile:
        rewrite(graph, bytes(reversed(content)) + content)
        with pytest.raises(InputError, match=WRITTEN):
            profile.columns("nodes")


@pytest.mark.usefixtures("held")
def test_a_file_that_is_appended_to_is_as_it_was(graph):
    with peakline.open(graph) as profile:
        for _ in range(3):
            with graph.open("ab") as file:
                file.write(b"\xff" * 4096)
            profile.columns("nodes")
        assert profile.columns("nodes").rows == GRAPH_ROWS
        assert not profile.warnings


@pytest.mark.usefixtures("held")
def test_a_file_whose_name_leads_elsewhere_is_as_it_was(graph, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"nothing")
    with peakline.open(graph) as profile:
        other.rename(graph)
        assert profile.columns("nodes").rows == GRAPH_ROWS


def test_a_small_file_is_read_once(graph):
    content = graph.read_bytes()[:1000]
    graph.write_bytes(content)
    file = SourceFile(str(graph))
    graph.write_bytes(b"")
    assert file.buffer.tobytes() == content
    file.check()


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("form", samples(DATA), ids=lambda form: form.name)
def test_whatever_the_format_the_answer_is_right_or_one_error(form, tmp_path):
    path, said = tmp_path / form.name.replace("/", "_"), set()
    path.write_bytes(form.file)
    with peakline.open(path) as profile:
        # All but the warnings, which are those of what was read.
        whole = {name: profile.table(name) for name in profile.tables if name != "warnings"}
    for content in (form.file, gzip.compress(form.file)):
        path.write_bytes(content)
        with peakline.open(path) as profile:
            os.truncate(path, len(content) // 2)
            for table, right in whole.items():
                try:
                    assert profile.table(table).equals(right)
                except InputError as error:
                    said.add(str(error))
    assert said <= {f"{path}: {SHORTER}"}


def test_other_bus_errors_end_the_process_as_before(tmp_path):
    """Those of a map that nobody guards, with and without a handler that was there before."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * mmap.PAGESIZE * 4)
    code = """
import faulthandler, mmap, os, sys
from peakline.formats.common import files
path, before, after = sys.argv[1], *map(int, sys.argv[2:])
if before: faulthandler.enable()
files._MOST_COPIED = 0
descriptor = os.open(path, os.O_RDONLY)
file = files.StoredFile(os.dup(descriptor), path)
guarded = file.content()
if after: faulthandler.enable()
other = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
os.truncate(path, 0)
if not after: assert guarded[0] == 0
print("alive", flush=True)
other[0]
print("never")
"""
    for before, after in ((0, 0), (1, 0), (0, 1), (1, 1)):
        path.write_bytes(b"x" * mmap.PAGESIZE * 4)
        done = subprocess.run(
            [sys.executable, "-c", code, str(path), str(before), str(after)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout == "alive\n"
        assert done.returncode == -7, done.stderr  # SIGBUS
        assert ("Fatal Python error: Bus error" in done.stderr) == bool(before or after)


def test_a_guard_is_taken_off_with_its_map(graph, monkeypatch):
    monkeypatch.setattr(files, "_MOST_COPIED", 0)
    for _ in range(3000):  # more than there are slots
        file = SourceFile(str(graph))
        assert file.buffer[0] == 10
        assert file._stored._slot >= 0
        file.close()
    with pytest.raises(IndexError):
        bus_errors.is_lost(1 << 20)


def test_a_handler_that_came_later_is_followed_by_ours(graph, monkeypatch):
    monkeypatch.setattr(files, "_MOST_COPIED", 0)
    was_enabled = faulthandler.is_enabled()
    faulthandler.enable()
    try:
        file = SourceFile(str(graph))
        content = file.buffer
        os.truncate(graph, 0)
        assert content[0] == 0
    finally:
        if not was_enabled:
            faulthandler.disable()
    with pytest.raises(InputError, match=SHORTER):
        file.check()
    file.close()


def test_a_writer_that_never_rests(tmp_path):
    """Whatever is read while a file is cut and written again and again: the answer, or one line."""
    content = gzip.decompress(XSPACE.read_bytes())
    content = content * (1 + (3 << 20) // len(content))
    path = tmp_path / "s" / "vm.xplane.pb"
    path.parent.mkdir()
    path.write_bytes(content)
    session = session_of(tmp_path / "logs", {"vm.xplane.pb": path})
    place = Path(session.hosts()[0].path)
    stop, said = threading.Event(), []

    def write():
        while not stop.is_set():
            rewrite(place, content[: len(content) // 2])
            rewrite(place, content)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        engine = Engine()
        for _ in range(20):
            try:
                engine.tool(session, "memory_profile")
                engine.tool(session, "summary")
            except PeaklineError as error:
                said.append(str(error))
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not any("\n" in line for line in said)
    place.write_bytes(content)
    assert engine.tool(session, "summary").content
