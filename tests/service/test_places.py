"""Places that a server serves: roots, recordings to view, deliveries."""

import shutil
import threading
import urllib.request
from dataclasses import dataclass

import pytest
from tests.each_row import each_row
from tests.repository.places import put
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem, serving
from tests.service.server_here import server_here

from peakline import __version__
from peakline.errors import ForbiddenError
from peakline.repository import Repository
from peakline.service.access import Access, root_names
from peakline.service.deliveries import Deliveries
from peakline.service.places import Places
from peakline.service.settings import Settings
from peakline.service.view_place import find_place


@dataclass(eq=False)
class Guest:
    peer: str
    places: Places
    group: str = ""
    gave_way: bool = False

    def give_way(self):
        self.gave_way = True

    def __post_init__(self):
        self.is_in = self.places.take(self)


def test_the_longest_wait_gives_way():
    places = Places(3, 3)
    first, second, third = (Guest(peer, places) for peer in "abc")
    places.waits(first)
    fourth = Guest("d", places)
    assert [guest.gave_way for guest in (first, second, third, fourth)] == [False, True] + 2 * [
        False
    ]
    assert (len(places), fourth.is_in) == (3, True)


def test_nobody_takes_the_place_of_one_who_is_worked_for():
    places = Places(2, 2)
    first, second = Guest("a", places), Guest("b", places)
    places.works(first)
    places.works(second)
    assert not Guest("c", places).is_in
    assert not places.free_one()
    places.waits(second)
    assert Guest("c", places).is_in
    assert (first.gave_way, second.gave_way) == (False, True)


def test_a_peer_with_all_it_may_have_displaces_only_itself():
    places = Places(100, 3)
    others = [Guest(str(number), places) for number in range(90)]
    many = [Guest("many", places) for _ in range(1000)]
    assert not any(other.gave_way for other in others)
    assert [guest.gave_way for guest in many] == [True] * 997 + [False] * 3
    for guest in many[-3:]:
        places.works(guest)
    assert not Guest("many", places).is_in
    assert Guest("new", places).is_in
    assert len(places) == 94


def test_of_a_peer_one_of_its_largest_group_gives_way():
    places = Places(100, 10)
    alone = Guest("a", places, "one call")
    many = [Guest("a", places, "many calls") for _ in range(20)]
    few = [Guest("a", places, "few calls") for _ in range(3)]
    assert [guest.gave_way for guest in many] == [True] * 14 + [False] * 6
    assert not any(guest.gave_way for guest in (alone, *few))


def test_whoever_left_is_forgotten():
    places = Places(4, 2)
    guests = [Guest(peer, places) for peer in "aabb"]
    places.works(guests[0])
    for guest in (*guests, *guests):
        places.leave(guest)
        places.waits(guest)
    assert len(places) == 0
    assert all(Guest(peer, places).is_in for peer in "aabb")
    assert not any(guest.gave_way for guest in guests)


@each_row(
    ("roots", "names"),
    [
        (["/srv/logs"], ["logs"]),
        (["/srv/logs/plugins/profile"], ["logs"]),
        (["/srv/logs/", "/srv/./logs"], ["logs"]),
        (["/a/logs", "/b/logs", "/c"], ["a/logs", "b/logs", "c"]),
        (["/a/x/logs", "/b/x/logs"], ["a/x/logs", "b/x/logs"]),
        (["/logs", "/a/logs"], ["logs", "a/logs"]),
        (["s3://bucket/team/runs", "gs://other/runs"], ["team/runs", "other/runs"]),
        (["s3://bucket"], ["bucket"]),
        (["/"], ["logs"]),
        (["/plugins/profile"], ["profile"]),
    ],
)
def test_a_name_is_as_much_of_the_end_as_tells_it_from_the_others(roots, names):
    found = root_names(roots)
    assert list(found) == names
    assert set(found.values()) <= set(roots)


def test_the_server_tells_its_roots_and_takes_their_names(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "plugins" / "profile" / f"of_{name}").mkdir(parents=True)
        (tmp_path / name / "plugins" / "profile" / f"of_{name}" / "h.xplane.pb").touch()
    roots = tmp_path / "one", tmp_path / "two"
    with serving(
        tmp_path, *roots, read_only=True, profiler_port=9012, workers={"b": "b:1", "a": "a:1"}
    ) as face:
        answer = face.client.get("/api/server")
        assert answer.json() == {
            "version": __version__,
            "roots": ["one", "two"],
            "read_only": True,
            "max_upload_bytes": 4 << 30,
            "max_capture_s": 600.0,
            "profiler_port": 9012,
            "workers": ["a", "b"],
            "source": None,
            "source_is_logdir": False,
        }
        assert str(tmp_path) not in answer.text
        (listed,) = face.client.get("/api/sessions", params={"root": "two"}).json()
        assert listed["session_id"] == "of_two"
        problem(face.client.get("/api/sessions"), 400, "INVALID_ARGUMENT")
        problem(
            face.client.get("/api/sessions", params={"root": "three"}), 403, "PERMISSION_DENIED"
        )


CNN = SESSIONS["tf2_cnn"]


@pytest.fixture
def elsewhere(sample_logdir, tmp_path):
    """A file outside of what is served."""
    (tmp_path / "elsewhere").mkdir()
    (sample,) = (sample_logdir / "plugins" / "profile" / CNN).iterdir()
    return str(shutil.copy(sample, tmp_path / "elsewhere"))


@pytest.fixture
def logdir(elsewhere, tmp_path):
    """A log directory whose only session is a link to that file."""
    session = tmp_path / "logs" / "plugins" / "profile" / "mine"
    session.mkdir(parents=True)
    (session / "vm.xplane.pb.gz").symlink_to(elsewhere)
    return tmp_path / "logs"


def hosts_of(access):
    return [file.host for file in access.host_files(access.run("", "mine"))]


def test_a_link_to_a_linked_file_is_followed(logdir, elsewhere):
    access = Access(Settings(roots=(str(logdir),), linked=(elsewhere,)))
    assert hosts_of(access) == ["vm"]
    assert access.confine(str(logdir / "plugins/profile/mine/vm.xplane.pb.gz")) == elsewhere


def test_a_link_to_any_other_file_is_not(logdir, elsewhere, tmp_path):
    beside = str(shutil.copy(elsewhere, tmp_path / "elsewhere" / "beside.xplane.pb.gz"))
    for linked in ((), (beside,)):
        access = Access(Settings(roots=(str(logdir),), linked=linked))
        assert hosts_of(access) == []
        with pytest.raises(ForbiddenError):
            access.confine(str(logdir / "plugins/profile/mine/vm.xplane.pb.gz"))


def test_the_folder_of_a_linked_file_is_no_log_directory(logdir, elsewhere, tmp_path):
    access = Access(Settings(roots=(str(logdir),), linked=(elsewhere,)))
    with pytest.raises(ForbiddenError):
        access.repository(str(tmp_path / "elsewhere"))


def test_a_server_may_have_no_grpc_face(logdir):
    before = set(threading.enumerate())
    with server_here(logdir, grpc_port=None) as server:
        assert server.grpc_port is None
        assert server.announcement() == f"serving {logdir} (1 session) on {server.url}"
        with urllib.request.urlopen(f"{server.url}/healthz") as answer:  # noqa: S310
            assert answer.status == 200
        names = {thread.name.partition("_")[0] for thread in {*threading.enumerate()} - before}
        assert "http" in names
        assert names.isdisjoint({"grpc", "grpc-health", "grpc-reflection"})


TRACE = b'{"traceEvents": []}'


@pytest.mark.parametrize(
    ("files", "logdir", "session", "listed"),
    [
        (["vm_7.17.pt.trace.json"], "made", "logs", ["logs"]),
        (["a/vm.17.pt.trace.json"], "logs", "a", ["a"]),
        (["a/vm.17.pt.trace.json", "b/vm.18.pt.trace.json"], "logs", None, ["a", "b"]),
        (["vm.17.pt.trace.json", "b/vm.18.pt.trace.json"], "logs", None, ["b", "logs"]),
        (["exp/v0/vm.17.pt.trace.json"], "logs/exp", "v0", ["v0"]),
        (
            ["exp/v0/a.1.pt.trace.json", "exp/v1/a.2.pt.trace.json"],
            "logs/exp",
            None,
            ["v0", "v1"],
        ),
        (["step.json", "notes.md"], "made", "step.json", ["step.json"]),
    ],
)
def test_where_a_view_begins(tmp_path, files, logdir, session, listed):
    put(tmp_path / "logs", *files, content=TRACE)
    (tmp_path / "made").mkdir()
    place = find_place(str(tmp_path / "logs"), None, None, str(tmp_path / "made"))
    assert (place.logdir, place.session) == (str(tmp_path / logdir), session)
    assert sorted(one.name for one in Repository(place.logdir).sessions()) == listed


def test_a_nested_run_that_is_named(tmp_path):
    logs = tmp_path / "logs"
    put(logs, "exp/v0/a.1.pt.trace.json", "exp/v0/b.1.pt.trace.json", "v1/a.2.pt.trace.json")
    place = find_place(str(logs), "exp/v0", "b", str(tmp_path))
    assert (place.logdir, place.session, place.host) == (str(logs / "exp"), "v0", "b")


MOST = 64 << 20


def _deliveries():
    return Deliveries(Settings(".", cache_bytes=0))


def test_the_oldest_gives_way():
    deliveries, gone = _deliveries(), []
    for number in range(4):
        deliveries.add(bytes(MOST // 2), lambda number=number: gone.append(number))
    assert gone == [0, 1]


def test_one_alone_may_be_larger():
    deliveries, gone = _deliveries(), []
    delivery = deliveries.add(bytes(MOST + 1), lambda: gone.append(0))
    assert gone == []
    deliveries.remove(delivery)
    deliveries.add(bytes(MOST), lambda: gone.append(1))
    assert gone == []


def test_the_same_bytes_for_many_clients_count_once():
    deliveries, gone = _deliveries(), []
    content = bytes(MOST)
    held = [deliveries.add(content, lambda: gone.append("shared")) for _ in range(100)]
    assert gone == []
    for one in held[1:]:
        deliveries.remove(one)
    deliveries.remove(held[1])
    deliveries.add(b"1", lambda: gone.append("new"))
    assert gone == ["shared"]
    deliveries.remove(held[0])
    deliveries.add(bytes(MOST - 1), lambda: gone.append("last"))
    assert gone == ["shared"]
