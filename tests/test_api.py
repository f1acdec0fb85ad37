"""The Python face over sessions."""

import json
from importlib.resources import files

import pytest

import peakline
from peakline.errors import UsageError
from tests.engine.ending import DATA, session_of

MULTIHOST = DATA / "sessions/tf2_multihost"
HOSTS = ["localhost_47507", "localhost_56665"]


def test_a_repository_its_sessions_and_hosts():
    repository = peakline.Repository(MULTIHOST)
    (session,) = repository.sessions()
    assert session.session_id == "2026_11_20_17_33_46"
    assert repository.session(session.session_id).path == session.path
    assert session.hosts == HOSTS
    assert {"memory_findings", "memory_profile", "trace_viewer"} <= set(session.tools())
    assert "tf2_multihost" in repr(repository)
    assert session.session_id in repr(session)


def test_tools_for_one_host_and_for_all():
    session = peakline.Repository(MULTIHOST).sessions()[0]
    with session.open("localhost:47507") as profile:
        right = profile.tool("memory_profile", max_snapshots=5)
        assert profile.columns("events").rows > 0
    one = session.tool("memory_profile", host=HOSTS[0], max_snapshots=5)
    assert (one.content, one.format) == (right.content, right.format)
    assert isinstance(session.tool("memory_profile", format="proto"), peakline.Answer)
    assert (
        peakline.Repository(MULTIHOST).sessions()[0].tool("memory_profile").content != one.content
    )


def test_several_hosts_leave_a_choice(tmp_path):
    session = peakline.Repository(MULTIHOST).sessions()[0]
    with pytest.raises(peakline.UsageError, match="open needs one host; there is: localhost_47507"):
        session.open()
    session_of(tmp_path, {"only.profile": (DATA / "run_metadata/tf1_grpc.pb.gz")})
    with peakline.Repository(tmp_path).session("s").open() as profile:
        assert profile.format == "run_metadata"


def test_errors_of_the_layout(tmp_path):
    with pytest.raises(peakline.NotFoundError):
        peakline.Repository(tmp_path / "nowhere").sessions()
    with pytest.raises(peakline.NotFoundError, match="no session 'x'; there is: "):
        peakline.Repository(MULTIHOST).session("x")
    with pytest.raises(peakline.UsageError):
        peakline.Repository(MULTIHOST).session("../x")


def test_a_repository_reads_hosts_where_it_is_told():
    with peakline.Repository(MULTIHOST, executor="processes", workers=1) as repository:
        (session,) = repository.sessions()
        there = session.tool("step_breakdown", format="csv")
    (here,) = peakline.Repository(MULTIHOST).sessions()
    assert there == here.tool("step_breakdown", format="csv")
    with pytest.raises(UsageError, match="no executor 'x'"):
        peakline.Repository(MULTIHOST, executor="x")


class TestOneProfile:
    """What a profile answers in Python is what the verbs print."""

    @pytest.fixture
    def profile(self):
        with peakline.open(str(files("peakline") / "demo")) as found:
            yield found

    def test_steps(self, profile):
        steps = profile.steps()
        whole = profile.sql("select * from step_breakdown where not is_cut_off").to_pylist()
        assert steps.rows == len(whole) > 0
        assert steps.part("idle_ps").tolist() == [row["idle_ps"] for row in whole]

    def test_critical_path(self, profile):
        answer = json.loads(profile.tool("critical_path").content)
        path = profile.critical_path()
        assert path.step == answer["step_name"]
        assert path.explained == pytest.approx(answer["explained"])
        assert profile.critical_path(path.step).by_kind() == path.by_kind()
        with pytest.raises(peakline.NotFoundError):
            profile.critical_path("no such step")

    def test_launches(self, profile):
        assert profile.launches().devices == ()

    def test_check(self, profile):
        peak = profile.memory().allocators[0].peak_bytes
        (held,) = profile.check(max_peak_bytes=peak)
        (broken,) = profile.check(max_peak_bytes=peak - 1)
        assert (held.passed, broken.passed) == (True, False)
        assert broken.measured == peak
        assert profile.check() == ()
        with pytest.raises(peakline.NotFoundError):
            profile.check(max_peak_bytes=1, allocator="no such allocator")

    def test_diff(self, profile):
        assert peakline.diff(profile, profile).is_empty
        with pytest.raises(peakline.NotFoundError):
            peakline.diff(profile, profile, allocator="no such allocator")
