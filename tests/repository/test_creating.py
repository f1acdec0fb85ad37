"""Creating sessions and writing into them."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.repository.places import put
from tests.waiting import HANG_S

from peakline.errors import ExistsError, OutputError, RemoteError, UsageError
from peakline.repository import HostFile, Repository, check_output, write_atomically

PLUGIN = "plugins/profile"

WRITER = """
import sys, time
from peakline.repository import Repository
with Repository(sys.argv[1]).create_session("s") as session:
    session.write("whole", lambda stream: stream.write(b"whole"))
    def write(stream):
        stream.write(b"half" * 100_000)
        stream.flush()
        print("writing", flush=True)
        time.sleep(600)
    session.write("half", write)
"""

CLAIMER = """
import sys
from peakline.errors import ExistsError
from peakline.repository import Repository
repository, name = Repository(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
for line in sys.stdin:
    try:
        with repository.create_session(line.strip()) as session:
            session.write("a", lambda stream: stream.write(name.encode()))
            session.write("b", lambda stream: stream.write(name.encode()))
        print("won", flush=True)
    except ExistsError:
        print("lost", flush=True)
"""


def content(text):
    return lambda stream: stream.write(text)


def files(tmp_path):
    return sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())


def test_a_session_has_whole_files_and_nothing_else(tmp_path):
    repository = Repository(tmp_path / "logs")
    with repository.create_session("s") as session:
        file = session.write("localhost:1", content(b"abc"))
        session.write("b", content(b"def"), suffix=".profile")
    place = tmp_path / "logs" / PLUGIN / "s"
    assert file == HostFile("localhost_1", str(place / "localhost_1.xplane.pb"))
    assert {p.name: p.read_bytes() for p in place.iterdir()} == {
        "localhost_1.xplane.pb": b"abc",
        "b.profile": b"def",
    }
    assert repository.session("s").hosts()[1].path == file.path


def test_a_session_beside_others_lies_where_they_do(tmp_path):
    put(tmp_path, "old/vm.xplane.pb")
    with Repository(tmp_path).create_session("s") as session:
        session.write("vm", content(b"x"))
    assert files(tmp_path) == ["old/vm.xplane.pb", "s/vm.xplane.pb"]


def test_without_a_file_the_directory_goes(tmp_path):
    repository = Repository(tmp_path)
    with repository.create_session("s"):
        assert (tmp_path / PLUGIN / "s").is_dir()
    assert list((tmp_path / PLUGIN).iterdir()) == []

    def fail(session):
        with session:
            session.write("vm", lambda _stream: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        fail(repository.create_session("s"))
    assert list((tmp_path / PLUGIN).iterdir()) == []


def test_without_a_descriptor_left_no_directory_stays(tmp_path, monkeypatch):
    """As many files are open as may be, from any of the opens of a claim on."""
    repository, calls = Repository(str(tmp_path)), (os.open, os.listdir)
    for most in range(4):
        left = iter(range(most))

        def full(call, left=left):
            def counted(*arguments, **named):
                if next(left, None) is None:
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                return call(*arguments, **named)

            return counted

        with monkeypatch.context() as patch:
            for call in calls:
                patch.setattr(os, call.__name__, full(call))
            with (
                pytest.raises(RemoteError, match="Too many open files"),
                repository.create_session("s") as session,
            ):
                session.write("a", content(b"x"))
        assert not (tmp_path / PLUGIN / "s").exists()


def test_what_somebody_else_wrote_there_is_kept(tmp_path):
    with Repository(tmp_path).create_session("s") as session:
        put(tmp_path / PLUGIN / "s", "vm.xplane.pb", content=b"theirs")
        with pytest.raises(ExistsError, match="host 'vm' has a profile already"):
            session.write("vm", content(b"ours"), suffix=".profile")
    assert (tmp_path / PLUGIN / "s/vm.xplane.pb").read_bytes() == b"theirs"


@pytest.mark.parametrize("name", ["vm.xplane.pb", "vm.profile", "overview_page.json", ".hidden"])
def test_a_session_with_any_file_is_refused(tmp_path, name):
    put(tmp_path, f"{PLUGIN}/s/{name}")
    with pytest.raises(ExistsError, match="session 's' exists: it has files already"):
        Repository(tmp_path).create_session("s")
    assert files(tmp_path) == [f"{PLUGIN}/s/{name}"]


def test_what_a_killed_writer_left_is_taken(tmp_path):
    put((tmp_path / PLUGIN / "s"), ".peakline.0123456789abcdef")
    with Repository(tmp_path).create_session("s") as session:
        session.write("vm", content(b"x"))
    assert files(tmp_path) == [f"{PLUGIN}/s/vm.xplane.pb"]
    (tmp_path / PLUGIN / "empty").mkdir()
    with Repository(tmp_path).create_session("empty"):
        pass


def test_a_file_or_link_of_that_name_is_refused(tmp_path):
    put(tmp_path, f"{PLUGIN}/file", "elsewhere/readme")
    (tmp_path / PLUGIN / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / PLUGIN / "gone").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link", "gone"):
        with pytest.raises(ExistsError):
            Repository(tmp_path).create_session(name)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".a", "a\0", "x" * 201])
def test_names_are_checked(tmp_path, name):
    with pytest.raises(UsageError, match="is no session"):
        Repository(tmp_path).create_session(name)
    with Repository(tmp_path).create_session("s") as session:
        with pytest.raises(UsageError, match="is no host"):
            session.write(name, content(b"x"))
        with pytest.raises(UsageError, match="suffix"):
            session.write("vm", content(b"x"), suffix=f"/../{name}")


def test_a_place_that_cannot_be_written(tmp_path):
    put(tmp_path, "plugins")
    with pytest.raises(RemoteError, match="session 's' cannot be created: ") as caught:
        Repository(tmp_path).create_session("s")
    assert str(tmp_path) not in str(caught.value)


def test_a_host_is_written_once(tmp_path):
    with Repository(tmp_path).create_session("s") as session:

        def slow(stream):
            with pytest.raises(ExistsError, match="host 'a:1' has a profile already"):
                session.write("a:1", content(b"second"))
            stream.write(b"first")

        file = session.write("a_1", slow)
        with pytest.raises(ExistsError):
            session.write("a_1", content(b"third"), suffix=".xplane.pb.gz")
    with open(file.path, "rb") as stream:  # noqa: PTH123  (a path as text)
        assert stream.read() == b"first"
    with pytest.raises(UsageError, match="closed"):
        session.write("b", content(b"x"))


def test_a_failed_host_can_be_tried_again(tmp_path):
    with Repository(tmp_path).create_session("s") as session:
        with pytest.raises(ZeroDivisionError):
            session.write("a", lambda _stream: 1 / 0)
        session.write("a", content(b"x"))
    assert files(tmp_path) == [f"{PLUGIN}/s/a.xplane.pb"]


def test_many_hosts_at_once(tmp_path):
    hosts = [f"host-{n:02}" for n in range(32)]
    with Repository(tmp_path).create_session("s") as session, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda host: session.write(host, content(host.encode())), hosts))
    assert [file.host for file in Repository(tmp_path).session("s").hosts()] == hosts


def test_only_one_may_fill_a_session(tmp_path):
    repository = Repository(tmp_path)
    with repository.create_session("s"):
        with pytest.raises(ExistsError, match="is being written at this moment"):
            Repository(tmp_path).create_session("s")
        assert (tmp_path / PLUGIN / "s").is_dir()
    with repository.create_session("s") as session:
        session.write("vm", content(b"x"))


def test_threads_that_claim_one_name_at_once(tmp_path):
    repository = Repository(tmp_path)
    start = threading.Barrier(8)

    def claim(_number):
        start.wait(HANG_S)
        try:
            session = repository.create_session("s")
        except ExistsError:
            return None
        session.write("vm", content(b"x"))
        return session

    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        won = [session for session in pool.map(claim, range(8)) if session is not None]
        for session in won:
            stack.callback(session.close)
        assert len(won) == 1


def test_processes_that_claim_the_same_names_at_once(tmp_path):
    words = [sys.executable, "-c", CLAIMER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        both = [stack.enter_context(subprocess.Popen([*words, name], **pipes)) for name in "pq"]
        for process in both:
            assert process.stdout.readline() == "ready\n"
        for number in range(60):
            for process in both:
                process.stdin.write(f"s{number}\n")
                process.stdin.flush()
            answers = [process.stdout.readline().strip() for process in both]
            result = {p.name: p.read_bytes() for p in (tmp_path / PLUGIN / f"s{number}").iterdir()}
            assert sorted(answers) == ["lost", "won"]
            winner = b"pq"[answers.index("won")].to_bytes()
            assert result == {"a.xplane.pb": winner, "b.xplane.pb": winner}
        for process in both:
            process.stdin.close()
            process.wait(HANG_S)


def test_a_killed_writer_leaves_whole_files_and_no_lock(tmp_path):
    words = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "writing\n"
        with pytest.raises(ExistsError, match="is being written"):
            Repository(tmp_path).create_session("s")
        writer.send_signal(signal.SIGKILL)
        writer.wait(HANG_S)
    place = tmp_path / PLUGIN / "s"
    assert [p.name for p in place.iterdir()] == ["whole.xplane.pb"]
    with pytest.raises(ExistsError, match="has files already"):
        Repository(tmp_path).create_session("s")
    (place / "whole.xplane.pb").unlink()
    with Repository(tmp_path).create_session("s") as session:
        session.write("vm", content(b"x"))


def test_without_locks_only_a_new_directory_is_claimed(tmp_path, monkeypatch):
    def no_locks(_file, _how):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr("fcntl.flock", no_locks)
    (tmp_path / PLUGIN / "empty").mkdir(parents=True)
    with pytest.raises(ExistsError, match="has no locks"):
        Repository(tmp_path).create_session("empty")
    with Repository(tmp_path).create_session("s") as session:
        with pytest.raises(ExistsError, match="has no locks"):
            Repository(tmp_path).create_session("s")
        session.write("vm", content(b"x"))
    assert files(tmp_path) == [f"{PLUGIN}/s/vm.xplane.pb"]


def test_a_directory_that_was_replaced_meanwhile_is_not_removed(tmp_path):
    place = tmp_path / PLUGIN / "s"
    with Repository(tmp_path).create_session("s"):
        place.rename(tmp_path / "moved")
        place.mkdir()
    assert place.is_dir()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(words, capture_output=True, check=False)
    except OSError as error:
        pytest.skip(f"no mount: {error}")
    if mounted.returncode:
        pytest.skip(f"mounting a tmpfs is not allowed here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_is_one_line_and_leaves_nothing(small_disk):
    def much(stream):
        for _ in range(64):
            stream.write(b"x" * 65536)

    with Repository(small_disk).create_session("s") as session:
        with pytest.raises(RemoteError) as caught:
            session.write("vm", much)
        assert str(caught.value) == (
            "session 's': host 'vm' cannot be stored: No space left on device"
        )
        session.write("small", content(b"x"))
    assert files(small_disk) == [f"{PLUGIN}/s/small.xplane.pb"]
    assert os.statvfs(small_disk).f_bfree > 200


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


def test_a_link_that_takes_the_name_meanwhile_is_not_followed(tmp_path, monkeypatch):
    path, look = tmp_path / "out", os.path.lexists

    def swap(place):
        result = look(place)
        path.symlink_to(tmp_path / "elsewhere")
        return result

    monkeypatch.setattr(os.path, "lexists", swap)
    with pytest.raises(ExistsError):
        write_atomically(str(path), content(b"mine"))
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_file_that_takes_the_place_of_a_pipe_is_not_cut(tmp_path, monkeypatch):
    pipe, mine = tmp_path / "pipe", tmp_path / "mine"
    os.mkfifo(pipe)
    mine.write_bytes(b"mine")
    look = Path.is_file

    def swap(place):
        result = look(place)
        pipe.unlink()
        pipe.symlink_to(mine)
        monkeypatch.setattr(Path, "is_file", look)
        return result

    monkeypatch.setattr(Path, "is_file", swap)
    with pytest.raises(UsageError, match="another file took the name"):
        write_atomically(str(pipe), content(b"yours"), replace=True)
    assert mine.read_bytes() == b"mine"


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
