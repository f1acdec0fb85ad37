"""Which places a request may name, links and spellings included."""

import os
from pathlib import Path

import pytest
from tests.each_row import each_row

from peakline.errors import ForbiddenError, NotFoundError, PeaklineError, UsageError
from peakline.service.access import Access
from peakline.service.settings import Settings

_ID = "2026_11_20_17_02_06"


@pytest.fixture
def places(tmp_path):
    """A served log directory with a session, and one beside it that is not served."""
    for name in ("logs", "logs-secret"):
        session = tmp_path / name / "plugins" / "profile" / _ID
        session.mkdir(parents=True)
        (session / "host.xplane.pb").write_bytes(name.encode())
    nested = tmp_path / "logs" / "train" / "plugins" / "profile" / _ID
    nested.mkdir(parents=True)
    (nested / "host.xplane.pb").write_bytes(b"train")
    return tmp_path


@pytest.fixture
def access(places):
    return Access(Settings(roots=(str(places / "logs"),)))


def _content(session):
    return [Path(file.path).read_bytes() for file in session.hosts()]


def test_every_spelling_of_the_root_means_the_same_sessions(access, places, monkeypatch):
    monkeypatch.chdir(places)
    (places / "alias").symlink_to(places / "logs")
    logs = places / "logs"
    for root in ("", logs, f"{logs}/", f"{logs}//plugins/./profile", logs / "plugins" / "profile"):
        assert _content(access.run(str(root), _ID)) == [b"logs"], root
    for root in ("logs", "./logs", "alias", f"file://{logs}", f"{logs}/../logs", places / "alias"):
        assert _content(access.run(str(root), _ID)) == [b"logs"], root


def test_directories_below_the_root_are_roots_too(access, places):
    assert _content(access.run(str(places / "logs" / "train"), _ID)) == [b"train"]
    assert _content(access.run("", f"train/{_ID}", nested=True)) == [b"train"]


def test_a_served_directory_of_sessions_may_be_named_by_its_log_directory(places):
    access = Access(Settings(roots=(str(places / "logs" / "plugins" / "profile"),)))
    assert _content(access.run(str(places / "logs"), _ID)) == [b"logs"]
    with pytest.raises(ForbiddenError):
        access.repository(str(places / "logs" / "train"))
    with pytest.raises(ForbiddenError):
        access.repository(str(places / "logs" / "plugins"))


@each_row(
    "root",
    [
        "/", "/etc", "..", "{base}", "{base}/logs-secret", "{base}/logs/../logs-secret",
        "{base}/logs/..", "{base}/log", "{base}/logs/../../../../../../etc", "{base}/LOGS",
        "file:///etc", "file://{base}/logs-secret", "local:///etc", "~", "s3://bucket/logs",
        "memory://{base}/logs", "https://example.com/", "FILE:///etc", "/proc/self/root{base}/x",
        "simplecache::file://{base}/logs", "{base}/logs%2f..%2flogs-secret/../../x",
    ],
)  # fmt: skip
def test_what_is_outside_is_forbidden(access, places, root, monkeypatch):
    monkeypatch.chdir(places)
    with pytest.raises(ForbiddenError) as refused:
        access.repository(root.format(base=places))
    if "{base}" not in root:
        assert str(places) not in str(refused.value)


@each_row("root", ["\x00", "{base}/logs\x00", "{base}/logs\n", "\x7f", "x\udcff\x01"])
def test_what_is_no_path_is_refused(access, places, root):
    with pytest.raises(UsageError):
        access.repository(root.format(base=places))


@each_row("root", ["a/" * 3000, "x" * 5000, "{base}/logs/" + "x" * 300])
def test_a_path_that_is_too_long_is_an_error_in_a_line(access, places, root, monkeypatch):
    monkeypatch.chdir(places)
    with pytest.raises(PeaklineError) as refused:
        access.run(root.format(base=places), _ID)
    assert len(str(refused.value)) < 700


def test_with_several_roots_one_must_be_named(places):
    access = Access(Settings(roots=(str(places / "logs"), str(places / "logs-secret"))))
    assert _content(access.run(str(places / "logs-secret"), _ID)) == [b"logs-secret"]
    with pytest.raises(UsageError, match="2 log directories") as refused:
        access.repository("")
    assert str(places) not in str(refused.value)


@each_row(
    "name",
    [
        "", ".", "..", "../x", "a/b", "/etc", "\\x", "a\\..\\b", "x\x00", "\n", "x" * 201,
        ".hidden", "\udcff", "%2e%2e/x",
    ],
)  # fmt: skip
def test_a_session_s_name_never_leads_anywhere(access, name):
    with pytest.raises(UsageError):
        access.run("", name)


@each_row("name", ["../x", "train/../..", "/train", "train/", "train//x", "./train"])
def test_a_run_s_name_is_checked_part_by_part(access, name):
    with pytest.raises(UsageError):
        access.run("", name, nested=True)


def test_no_such_session_is_not_found(access):
    with pytest.raises(NotFoundError):
        access.run("", "2001_01_01_01_01_01")


def test_a_root_below_that_is_a_link_out_is_forbidden(access, places):
    (places / "logs" / "out").symlink_to(places / "logs-secret")
    (places / "logs" / "up").symlink_to("..")
    for root in ("out", "out/plugins/profile", "up", "up/logs-secret", "out/../logs-secret"):
        with pytest.raises(ForbiddenError):
            access.repository(str(places / "logs" / root))


def test_a_link_between_the_root_and_its_sessions_is_forbidden(access, places):
    for name, link in (("a", "plugins"), ("b", "plugins/profile")):
        place = places / "logs" / name / link
        place.parent.mkdir(parents=True)
        place.symlink_to(places / "logs-secret" / link)
        with pytest.raises(ForbiddenError, match="leads out"):
            access.repository(str(places / "logs" / name))


def test_links_that_stay_inside_are_followed(access, places):
    (places / "logs" / "in").symlink_to("train")
    ((places / "logs" / "plugins" / "profile") / "again").symlink_to(_ID)
    assert _content(access.run(str(places / "logs" / "in"), _ID)) == [b"train"]
    assert _content(access.run("", "again")) == [b"logs"]


def test_a_session_that_is_a_link_out_is_forbidden_and_not_listed(access, places):
    profile = places / "logs" / "plugins" / "profile"
    (profile / "stolen").symlink_to(places / "logs-secret" / "plugins" / "profile" / _ID)
    with pytest.raises(ForbiddenError, match="leads out") as refused:
        access.run("", "stolen")
    assert str(places) not in str(refused.value)
    listed = access.inside(access.repository("").sessions())
    assert [session.session_id for session in listed] == [_ID]


def test_a_host_s_file_that_is_a_link_out_is_forbidden(access, places):
    session_dir = places / "logs" / "plugins" / "profile" / _ID
    (session_dir / "other.xplane.pb").symlink_to(
        places / "logs-secret" / "plugins" / "profile" / _ID / "host.xplane.pb"
    )
    (session_dir / "same.xplane.pb").symlink_to("host.xplane.pb")
    session = access.run("", _ID)
    assert [file.host for file in access.host_files(session)] == ["host", "same"]
    with pytest.raises(ForbiddenError):
        access.confine(session.host("other").path)
    resolved = access.confine(session.host("same").path)
    assert resolved == os.path.realpath(session_dir / "host.xplane.pb")


def test_the_answer_does_not_follow_a_link_that_changes_afterwards(access, places):
    link = places / "logs" / "current"
    link.symlink_to("train")
    repository = access.repository(str(link))
    link.unlink()
    link.symlink_to(places / "logs-secret")
    assert _content(repository.session(_ID)) == [b"train"]


def test_an_operator_may_re_point_a_served_link(places):
    link = places / "current"
    link.symlink_to("logs")
    access = Access(Settings(roots=(str(link),)))
    assert _content(access.run("", _ID)) == [b"logs"]
    link.unlink()
    link.symlink_to("logs-secret")
    assert _content(access.run("", _ID)) == [b"logs-secret"]


def test_links_in_a_circle_are_an_error_in_a_line(access, places):
    (places / "logs" / "round").symlink_to("round")
    with pytest.raises(PeaklineError):
        access.run(str(places / "logs" / "round"), _ID)


@each_row(
    "root", ["memory://bucket/logs", "MEMORY://bucket//logs/./", "memory://bucket/logs/train"]
)
def test_remote_roots_are_compared_as_urls(root):
    access = Access(Settings(roots=("memory://bucket/logs",)))
    assert access.repository(root).logdir.startswith("memory://")


@each_row(
    "root",
    [
        "memory://bucket", "memory://bucket/logs-secret", "memory://bucket/logs/../x", "memory://",
        "s3://bucket/logs", "memory://bucket/logs::zip://x", "memory://bucket/logs?x",
        "bucket/logs", "/bucket/logs", "memory://bucket/logs#x", "memory://bucket/logs\\..\\x",
        "memory:/bucket",
    ],
)  # fmt: skip
def test_remote_places_outside_are_forbidden(root):
    access = Access(Settings(roots=("memory://bucket/logs",)))
    with pytest.raises(ForbiddenError):
        access.repository(root)
