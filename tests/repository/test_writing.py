import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.waiting import HANG_S

from peakline.errors import ExistsError, OutputError, UsageError
from peakline.repository import check_output, write_atomically

KILLED = """
import os, signal, sys
from peakline.repository import write_atomically
def write(stream):
    stream.write(b"half" * 1_000_000)
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
write_atomically(sys.argv[1], write)
"""


@pytest.fixture(params=["unnamed", "named", "no links"])
def way(request, monkeypatch):
    """Each way to write: with files without a name, without them, and without links too."""
    opened, linked = os.open, os.link

    def without_unnamed(path, flags, *words, **options):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return opened(path, flags, *words, **options)

    def without_links(*_words, **_options):
        raise OSError(errno.EPERM, "Operation not permitted")

    if request.param != "unnamed":
        monkeypatch.setattr(os, "open", without_unnamed)
        monkeypatch.setattr(os, "link", linked if request.param == "named" else without_links)
    return request.param


def write(content):
    return lambda stream: stream.write(content)


@pytest.mark.usefixtures("way")
def test_the_file_has_the_content_and_nothing_else_is_left(tmp_path):
    write_atomically(str(tmp_path / "f"), write(b"abc"))
    assert (tmp_path / "f").read_bytes() == b"abc"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


@pytest.mark.usefixtures("way")
def test_an_existing_file_is_replaced_only_on_demand(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists; use --force"):
        write_atomically(str(path), write(b"new"))
    assert path.read_bytes() == b"old"
    write_atomically(str(path), write(b"new"), replace=True)
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_and_a_device_are_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(str(path), write(b"abc"))
        assert os.read(reader, 9) == b"abc"
    finally:
        os.close(reader)
    for replace in (False, True):
        write_atomically(os.devnull, write(b"abc"), replace=replace)
    assert Path(os.devnull).is_char_device()


@pytest.mark.usefixtures("way")
def test_a_name_taken_while_writing_is_kept(tmp_path):
    path = tmp_path / "f"
    with pytest.raises(UsageError, match="exists"):
        write_atomically(str(path), lambda _stream: path.write_bytes(b"theirs"))
    assert path.read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.usefixtures("way")
def test_a_failure_leaves_nothing(tmp_path):
    def fail(stream):
        stream.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_atomically(str(tmp_path / "f"), fail)
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_nowhere_is_not_written_through(tmp_path):
    (tmp_path / "f").symlink_to(tmp_path / "target")
    with pytest.raises(UsageError, match="exists"):
        write_atomically(str(tmp_path / "f"), write(b"x"))
    assert not (tmp_path / "target").exists()


@pytest.mark.usefixtures("way")
def test_a_link_stays_and_the_file_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/old").write_bytes(b"old")
    (tmp_path / "link").symlink_to("folder/old")
    (tmp_path / "f").symlink_to("link")
    write_atomically(str(tmp_path / "f"), write(b"new"), replace=True)
    assert (tmp_path / "folder/old").read_bytes() == b"new"
    assert (tmp_path / "f").readlink() == Path("link")
    assert (tmp_path / "link").readlink() == Path("folder/old")
    assert len(list(tmp_path.rglob("*"))) == 4


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UsageError, match="cannot be written: Too many levels of symbolic links"):
        write_atomically(str(tmp_path / "a"), write(b""), replace=True)


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(UsageError, match="s: is a socket"):
            write_atomically("s", write(b""), replace=True)
        assert Path("s").is_socket()


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="the system does not name open files")
@pytest.mark.parametrize("replace", [False, True])
def test_an_open_file_is_written_where_it_is(tmp_path, replace):
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.write(b"first ")
        file.flush()
        there = path.stat().st_ino
        write_atomically(f"/dev/fd/{file.fileno()}", write(b"second "), replace=replace)
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{file.fileno()}")
        write_atomically(str(tmp_path / "link"), write(b"third"), replace=replace)
    assert path.read_bytes() == b"first second third"
    assert path.stat().st_ino == there
    assert (tmp_path / "link").is_symlink()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_device_is_no_wrong_name():
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left on device"):
        write_atomically("/dev/full", write(b"x"))


@pytest.mark.usefixtures("way")
def test_a_full_disk_is_no_wrong_name_and_costs_nothing(tmp_path):
    def fail(stream):
        stream.write(b"half")
        stream.flush()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(OutputError, match="f: cannot be written: No space left on device"):
        write_atomically(str(tmp_path / "f"), fail, replace=True)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("f", b"old")]


def test_a_name_alone_can_be_checked(tmp_path):
    (tmp_path / "f").write_bytes(b"")
    check_output(str(tmp_path / "f"), replace=True)
    check_output(str(tmp_path / "new"), replace=False)
    check_output(os.devnull, replace=False)
    with pytest.raises(ExistsError, match="exists; use --force"):
        check_output(str(tmp_path / "f"), replace=False)
    with pytest.raises(UsageError, match="is a directory"):
        check_output(str(tmp_path), replace=True)


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(UsageError, match="is a directory"):
        write_atomically(str(tmp_path), write(b""), replace=True)
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        write_atomically(str(tmp_path / "no/f"), write(b""))


@pytest.mark.usefixtures("way")
def test_others_may_read_it_as_any_new_file(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    write_atomically(str(tmp_path / "f"), write(b""))
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "usual").stat().st_mode
    )


def test_a_killed_process_leaves_nothing(tmp_path):
    run = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "f")], check=False)
    assert run.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("way")
def test_a_failed_replacement_keeps_what_was_there(tmp_path, monkeypatch):
    def fail(*_words, **_options):
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "f").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OutputError, match="cannot be written: "):
        write_atomically(str(tmp_path / "f"), write(b"new"), replace=True)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("f", b"old")]


def test_of_two_writers_of_a_name_one_wins(tmp_path):
    start = threading.Barrier(2)

    def contend(content):
        def together(stream):
            stream.write(content)
            start.wait(HANG_S)

        try:
            write_atomically(str(tmp_path / "f"), together)
        except ExistsError:
            return None
        return content

    with ThreadPoolExecutor(2) as pool:
        won = [content for content in pool.map(contend, (b"one", b"two")) if content]
    assert [(tmp_path / "f").read_bytes()] == won
