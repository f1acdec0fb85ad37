"""What killed writers left goes; what anybody is making, or made, stays."""

import errno
import fcntl
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.repository.places import put

from peakline.errors import ExistsError
from peakline.repository import Repository, write_atomically
from peakline.repository.cleaning import MAKING, clean, clean_sessions, remove_temporary

PLUGIN = "plugins/profile"
LEFT = ".peakline.0123456789abcdef"
ROUNDS = 150


@contextmanager
def opened(place):
    descriptor = os.open(place, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def content(text):
    return lambda stream: stream.write(text)


def is_marked(place):
    return bool(place.stat().st_mode & stat.S_ISVTX)


def half_made(place, *names):
    """A session's directory whose maker is gone."""
    place.mkdir(parents=True)
    place.chmod(MAKING)
    for name in names:
        (place / name).write_bytes(b"x")
    return place


def names(place):
    return sorted(path.name for path in place.iterdir())


def test_a_session_is_marked_until_it_is_done(tmp_path):
    repository, place = Repository(tmp_path), tmp_path / PLUGIN / "s"
    (tmp_path / "usual").mkdir()
    with repository.create_session("s") as session:
        assert is_marked(place)
        session.write("vm", content(b"x"))
        assert is_marked(place)
    assert place.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_what_a_killed_maker_left_goes_and_its_whole_files_stay(tmp_path):
    place = tmp_path / PLUGIN
    half_made(place / "empty")
    half_made(place / "half", LEFT)
    half_made(place / "one", LEFT, "vm.xplane.pb")
    assert Repository(tmp_path).clean() == 3
    assert names(place) == ["one"]
    assert names(place / "one") == ["vm.xplane.pb"]
    assert not is_marked(place / "one")
    assert Repository(tmp_path).clean() == 0


def test_nested_runs_are_cleaned_on_demand(tmp_path):
    place = tmp_path / "train" / PLUGIN
    half_made(place / "s", LEFT)
    assert Repository(tmp_path).clean() == 0
    assert Repository(tmp_path).clean(nested=True) == 1
    assert names(place) == []


def test_what_is_no_session_of_ours_stays(tmp_path):
    place = tmp_path / PLUGIN
    (place / "theirs").mkdir(parents=True)  # by a runtime that will write into it
    put(place, f"theirs2/{LEFT}", "file", ".hidden/x")
    (place / ".hidden").chmod(MAKING)
    half_made(tmp_path / "elsewhere")
    (place / "link").symlink_to(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    assert Repository(tmp_path).clean(nested=True) == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert is_marked(tmp_path / "elsewhere")


def test_what_belongs_to_another_user_stays(tmp_path, monkeypatch):
    half_made(tmp_path / "s", LEFT)
    (tmp_path / LEFT).touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with opened(tmp_path) as directory:
        assert (clean_sessions(directory), remove_temporary(directory)) == (0, 0)
    assert names(tmp_path) == [LEFT, "s"]


def test_what_is_being_made_stays(tmp_path):
    """The lock is that of any process: here of this one."""
    repository, place = Repository(tmp_path), tmp_path / PLUGIN
    with repository.create_session("s") as session:

        def write(stream):
            assert Repository(tmp_path).clean() == 0
            stream.write(b"x")

        assert Repository(tmp_path).clean() == 0
        session.write("vm", write)
        assert Repository(tmp_path).clean() == 0
    assert names(place / "s") == ["vm.xplane.pb"]


def test_where_there_are_no_locks_everything_stays(tmp_path, monkeypatch):
    def unknown(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    half_made(tmp_path / PLUGIN / "s", LEFT)
    (tmp_path / LEFT).touch()
    monkeypatch.setattr(fcntl, "flock", unknown)
    assert Repository(tmp_path).clean() == 0
    with opened(tmp_path) as directory:
        assert remove_temporary(directory) == 0
    assert names(tmp_path / PLUGIN / "s") == names(tmp_path)[:1] == [LEFT]


def test_a_place_that_is_not_there_has_nothing(tmp_path):
    put(tmp_path, "file")
    assert [clean(str(tmp_path / name)) for name in ("no", "file")] == [0, 0]
    assert Repository(tmp_path / "no").clean(nested=True) == 0
    assert Repository("memory://logs").clean(nested=True) == 0


def test_an_id_that_a_killed_maker_had_can_be_taken(tmp_path):
    half_made(tmp_path / PLUGIN / "s", LEFT)
    with Repository(tmp_path).create_session("s"):
        assert names(tmp_path / PLUGIN / "s") == []
    assert names(tmp_path / PLUGIN) == [], "of a session without a file its directory goes"


def test_temporary_files_and_folders_of_the_dead_go(tmp_path):
    others = [".peakline.0123456789abcde", ".peakline.claim", "peakline.0123456789abcdef"]
    put(tmp_path, LEFT, ".peakline.00000000000000aa/f", *others)
    (tmp_path / ".peakline.00000000000000bb").symlink_to("f")
    os.mkfifo(tmp_path / ".peakline.00000000000000cc")
    put(tmp_path, ".peakline.00000000000000dd/folder/f")
    put(tmp_path, ".peakline.00000000000000ee")
    with (tmp_path / ".peakline.00000000000000ee").open() as living, opened(tmp_path) as directory:
        fcntl.flock(living, fcntl.LOCK_EX)
        assert remove_temporary(directory) == 2
    left = [f".peakline.00000000000000{two}" for two in ("bb", "cc", "dd", "ee")]
    assert names(tmp_path) == sorted([*others, *left])
    assert (tmp_path / ".peakline.00000000000000dd/folder/f").is_file()


@pytest.fixture(params=["unnamed", "named"])
def way(request, monkeypatch):
    """Files without a name, or with one from the beginning."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE")


@contextmanager
def repeated(work):
    """Do it again and again, in another thread, until the end of the block."""
    over = threading.Event()

    def run():
        count = 0
        while not over.is_set():
            work()
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            yield
        finally:
            over.set()
    assert done.result() > 0


@pytest.mark.usefixtures("way")
def test_no_file_that_is_being_written_is_taken_for_one_that_was_left(tmp_path):
    def remove():
        with opened(tmp_path) as directory:
            remove_temporary(directory)

    with repeated(remove):
        for number in range(ROUNDS):
            text = str(number).encode()
            write_atomically(str(tmp_path / "f"), content(text), replace=True)
            assert (tmp_path / "f").read_bytes() == text
    assert names(tmp_path) == ["f"]


@pytest.mark.usefixtures("way")
def test_no_session_that_is_being_made_is_taken_for_one_that_was_left(tmp_path):
    repository = Repository(tmp_path)
    with repeated(Repository(tmp_path).clean):
        for number in range(ROUNDS):
            with repository.create_session(f"s{number}") as session:
                session.write("vm", content(b"x"))
    result = [Path(file.path) for one in repository.sessions() for file in one.hosts()]
    assert len(result) == ROUNDS
    assert not any(is_marked(file.parent) for file in result)


def test_of_two_who_take_what_was_left_one_gets_it(tmp_path):
    half_made(tmp_path / PLUGIN / "s", LEFT)
    with closing(Repository(tmp_path).create_session("s")) as session:
        with pytest.raises(ExistsError, match="is being written at this moment"):
            Repository(tmp_path).create_session("s")
        session.write("vm", content(b"x"))
    assert names(tmp_path / PLUGIN / "s") == ["vm.xplane.pb"]
