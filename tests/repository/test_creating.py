import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from tests.repository.places import put
from tests.waiting import HANG_S

from peakline.errors import ExistsError, RemoteError, UsageError
from peakline.repository import HostFile, Repository

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
            found = {p.name: p.read_bytes() for p in (tmp_path / PLUGIN / f"s{number}").iterdir()}
            assert sorted(answers) == ["lost", "won"]
            winner = b"pq"[answers.index("won")].to_bytes()
            assert found == {"a.xplane.pb": winner, "b.xplane.pb": winner}
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
