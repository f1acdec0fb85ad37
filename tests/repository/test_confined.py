"""What is opened lies inside, however links are changed meanwhile."""

import os
import threading

import pytest

from peakline.engine import Engine
from peakline.engine.profile_cache import open_profile
from peakline.errors import ForbiddenError, InputError, PeaklineError
from peakline.repository import Repository, confined
from peakline.repository.confined import Confinement

INSIDE, SECRET = b"inside", b"secret"
_ID = "2026_11_20_17_02_06"


@pytest.fixture(params=["kernel", "parts"])
def confinement(request, monkeypatch, places):
    """A path is walked by the kernel where it can, or by us part by part."""
    if request.param == "parts":
        monkeypatch.setattr(confined, "_has_openat2", lambda: False)
    elif not confined._has_openat2():
        pytest.skip("this kernel has no openat2")
    return Confinement((str(places / "logs"),))


@pytest.fixture
def places(tmp_path):
    """A directory that may be read, and one beside it that may not."""
    for name, content in (("logs", INSIDE), ("outside", SECRET)):
        session = tmp_path / name / "plugins" / "profile" / _ID
        session.mkdir(parents=True)
        (session / "vm.xplane.pb").write_bytes(content)
    return tmp_path


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def content(confinement, path):
    with os.fdopen(confinement.open_file(str(path)), "rb") as stream:
        return stream.read()


def test_what_is_inside_is_opened_by_any_spelling(confinement, places):
    file = places / "logs/plugins/profile" / _ID / "vm.xplane.pb"
    (places / "logs/relative").symlink_to(f"plugins/profile/{_ID}")
    (places / "logs/absolute").symlink_to(file.parent)
    (places / "entrance").symlink_to(places / "logs")
    for path in (
        file,
        places / "logs" / "plugins" / ".." / "plugins" / "profile" / _ID / "vm.xplane.pb",
        places / "logs/relative/vm.xplane.pb",
        places / "logs/absolute/vm.xplane.pb",
        places / "entrance/absolute/vm.xplane.pb",
    ):
        assert content(confinement, path) == INSIDE, path
    assert content(Confinement((str(places / "entrance"),)), file) == INSIDE


def test_what_is_outside_is_not(confinement, places):
    secret = places / "outside/plugins/profile" / _ID / "vm.xplane.pb"
    (places / "logs/file").symlink_to(secret)
    (places / "logs/folder").symlink_to(secret.parent)
    (places / "logs/up").symlink_to("../outside")
    (places / "logs/self").symlink_to(f"/proc/{os.getpid()}/root{secret}")
    (places / "logs-beside").mkdir()
    (places / "logs-beside/file").write_bytes(SECRET)
    for path in (
        secret,
        places / "logs/file",
        places / "logs/folder/vm.xplane.pb",
        places / "logs/up/plugins/profile" / _ID / "vm.xplane.pb",
        places / "logs/self",
        places / "logs/../outside/plugins/profile" / _ID / "vm.xplane.pb",
        places / "logs-beside/file",
        "/etc/passwd",
    ):
        with pytest.raises(ForbiddenError):
            confinement.open(str(path))


def test_what_is_not_there_is_not_there(confinement, places):
    with pytest.raises(FileNotFoundError):
        confinement.open(str(places / "logs/none"))
    with pytest.raises(NotADirectoryError):
        confinement.open(str(places / f"logs/plugins/profile/{_ID}/vm.xplane.pb/below"))
    (places / "logs/loop").symlink_to("loop")
    with pytest.raises((ForbiddenError, OSError)):
        confinement.open(str(places / "logs/loop"))


def test_a_pipe_is_not_waited_for(confinement, places):
    os.mkfifo(places / "logs/pipe")
    os.close(confinement.open_file(str(places / "logs/pipe")))


def test_a_file_that_becomes_a_link_after_it_was_found(confinement, places):
    repository = Repository(str(places / "logs"))
    repository.confine(confinement)
    (file,) = repository.session(_ID).hosts()
    place = places / "logs/plugins/profile" / _ID / "vm.xplane.pb"
    place.unlink()
    place.symlink_to(places / "outside/plugins/profile" / _ID / "vm.xplane.pb")
    for question in (lambda: open_profile(file), file.stamp, file.status):
        with pytest.raises(ForbiddenError):
            question()
    assert Engine().known_tools(repository.session(_ID)) == []


def test_a_session_that_becomes_a_link_after_it_was_found(confinement, places):
    repository = Repository(str(places / "logs"))
    repository.confine(confinement)
    session = repository.session(_ID)
    place = places / "logs/plugins/profile" / _ID
    place.rename(places / "away")
    place.symlink_to(places / "outside/plugins/profile" / _ID)
    for question in (session.hosts, session.stamp, lambda: session.host("vm")):
        with pytest.raises(ForbiddenError):
            question()
    assert session.modified() == 0
    assert repository.sessions() == []
    assert [problem.name for problem in repository.survey().problems] == [_ID]


def test_no_session_is_made_outside(confinement, places):
    plugins = places / "logs/plugins"
    plugins.rename(places / "away")
    plugins.symlink_to(places / "outside/plugins")
    repository = Repository(str(places / "logs"))
    repository.confine(confinement)
    with pytest.raises((ForbiddenError, InputError)):
        repository.create_session("new")
    assert names(places / "outside/plugins/profile") == [_ID]


def test_a_session_is_made_and_removed_where_it_was_claimed(confinement, places):
    repository = Repository(str(places / "logs" / "fresh" / "deeper"))
    repository.confine(confinement)
    made = repository.create_session("new")
    profile = places / "logs/fresh/deeper/plugins/profile"
    assert names(profile) == ["new"]
    profile.rename(places / "moved")
    profile.symlink_to(places / "outside/plugins/profile")
    (places / "outside/plugins/profile/new").mkdir()
    made.close()
    assert names(places / "moved") == []
    assert names(places / "outside/plugins/profile") == [_ID, "new"]


def test_links_that_change_all_the_time(confinement, places):
    place, other = places / "logs/plugins", places / "logs/other"
    other.symlink_to(places / "outside/plugins")
    spare = places / "logs/spare"
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for old, new in ((place, spare), (other, place), (place, other), (spare, place)):
                old.rename(new)

    swapping = threading.Thread(target=swap)
    swapping.start()
    result = set()
    try:
        for _ in range(2000):
            try:
                result.add(content(confinement, place / "profile" / _ID / "vm.xplane.pb"))
            except (OSError, PeaklineError):
                continue
    finally:
        stop.set()
        swapping.join()
    assert SECRET not in result
    assert result == {INSIDE}
