"""The public names, what they do together, and their reference."""

import inspect
import json
import re
from importlib import import_module
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_file_location

import pytest

import peakline
from peakline.errors import UsageError
from tests.each_row import each_row
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
        with peakline.open(str(files("peakline") / "demo")) as result:
            yield result

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


PROSE = re.compile(r"\braises?\b|\bnever fails\b", re.IGNORECASE)
NEVER_FAIL = {"capture_deadline_s", "default_options", "default_session_ids", "is_held"}
CALLED = ("peakline", "peakline.report", "peakline.capture", "peakline.record", "peakline.figures")


@pytest.fixture(scope="module")
def reference(root):
    spec = spec_from_file_location("api_reference", root / "scripts" / "api_reference.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def entries(reference):
    """Each public name with its object: ``peakline.Profile``, ``peakline.Profile.sql``."""
    result = {}
    for place in reference.PLACES:
        module = import_module(place)
        for name in reference.names_of(place):
            result[f"{place}.{name}"] = value = getattr(module, name)
            if inspect.isclass(value):
                for member in reference.members_of(value):
                    result[f"{place}.{name}.{member}"] = inspect.getattr_static(value, member)
    return result


def test_every_public_name_is_on_the_page_and_has_a_docstring(entries, root):
    page = (root / "docs" / "api.md").read_text(encoding="utf-8")
    titles = set(re.findall(r"^#{3,4} (?:peakline\.(?:\w+\.)?)?([\w.]+)$", page, re.MULTILINE))
    titles |= set(re.findall(r"^\| `(\w+Error|CheckFailed)` \|", page, re.MULTILINE))
    missing, silent = [], []
    for name, value in entries.items():
        parts = name.split(".")
        own = ".".join(parts[-2:] if parts[-2][:1].isupper() else parts[-1:])
        missing += [] if own in titles else [name]
        silent += [] if inspect.getdoc(value) else [name]
    assert len(entries) > 100
    assert missing == []
    assert silent == []


def test_what_can_fail_says_how(entries, reference):
    """A function says what it raises, or its class does for all methods, or its module."""
    silent = []
    for name, value in entries.items():
        place = next(p for p in sorted(reference.PLACES, key=len)[::-1] if name.startswith(p))
        if place not in CALLED or not inspect.isroutine(value):
            continue
        if name.rpartition(".")[2] in NEVER_FAIL:
            continue
        about = [inspect.getdoc(value)]
        parent = entries.get(name.rpartition(".")[0])
        about.append(inspect.getdoc(parent) if parent else import_module(place).__doc__)
        silent += [] if any(PROSE.search(text or "") for text in about) else [name]
    assert silent == []


@each_row("place", ["peakline", "peakline.answers", "peakline.figures", "peakline.report"])
def test_dir_lists_exactly_the_public_names(place):
    module = import_module(place)
    assert [name for name in dir(module) if not name.startswith("__")] == [
        name for name in sorted(module.__all__) if not name.startswith("__")
    ]


def test_dir_of_a_profile_lists_what_users_ask(reference, root):
    with peakline.open(root / "tests" / "data" / "sessions" / "jax_cpu") as profile:
        listed = [name for name in dir(profile) if not name.startswith("__")]
        assert listed == reference.members_of(peakline.Profile)
        assert {"memory", "sql", "tables", "to_pandas"} <= set(listed)
        assert all(hasattr(profile, name) for name in dir(profile))
