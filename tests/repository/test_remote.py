import gzip
import json
import socket
import sys
import time
from importlib import import_module
from urllib.request import Request, urlopen

import fsspec
import pytest
from tests.each_row import each_row
from tests.jobs.xspace_hosts import xspace_hosts

import peakline
from peakline.__main__ import main
from peakline.deadline import Deadline, within
from peakline.engine import Engine, ProfileCache
from peakline.errors import (
    CancelledError,
    ExistsError,
    InputError,
    NotFoundError,
    RemoteError,
    UsageError,
)
from peakline.formats.common.files import SourceFile
from peakline.repository import Extent, HostFile, Repository, extent_of, hosts, resolve
from peakline.repository.remote import RemoteClaim, _join
from peakline.repository.store import FileStatus

OLD, NEW = "2026_11_20_16_57_05", "2026_11_21_09_00_00"
PLUGIN = "plugins/profile"


class Place:
    """A log directory by URL, and the file system it lies in."""

    def __init__(self, url, options, requests=None):
        self.url, self.options, self.requests = url, options, requests
        self.system, self.path = fsspec.core.url_to_fs(url, use_listings_cache=False, **options)

    def put(self, *names, content=b"x"):
        for name in names:
            self.system.pipe_file(f"{self.path}/{name}", content)

    def files(self):
        result = (name.partition("/log/")[2] for name in self.system.find(self.path))
        return sorted(name for name in result if name)  # s3fs names an empty place itself

    def repository(self):
        return Repository(self.url, **self.options)


class Requests:
    """What a moto server was asked since the last look."""

    def __init__(self, monkeypatch):
        from moto.server import DomainDispatcherApplication

        self.seen = []
        serve = DomainDispatcherApplication.__call__

        def counted(application, environ, start_response):
            self.seen.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
            return serve(application, environ, start_response)

        monkeypatch.setattr(DomainDispatcherApplication, "__call__", counted)

    def since(self):
        seen, self.seen = self.seen, []
        return seen


@pytest.fixture(scope="module")
def s3():
    from moto.server import ThreadedMotoServer

    patch = pytest.MonkeyPatch()
    requests = Requests(patch)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    options = {"key": "a", "secret": "b", "client_kwargs": {"endpoint_url": endpoint}}
    yield endpoint, options, requests
    server.stop()
    patch.undo()


on_s3 = pytest.mark.parametrize("place", ["memory", "s3"], indirect=True)
"""What shows how a store of others behaves; all the rest is asked of one in the soak."""


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.soak)])
def place(request):
    if request.param == "memory":
        system = fsspec.filesystem("memory")
        system.store.clear()
        yield Place("memory://bucket/log", {})
        system.store.clear()
        return
    endpoint, options, requests = request.getfixturevalue("s3")
    with urlopen(Request(f"{endpoint}/moto-api/reset", method="POST"), timeout=60):  # noqa: S310
        pass
    fsspec.filesystem("s3", **options).mkdir("bucket")
    yield Place("s3://bucket/log", options, requests)


def names(result):
    return [item.name for item in result]


def test_sessions_hosts_and_files(place):
    place.put(f"{PLUGIN}/{OLD}/a.xplane.pb", f"{PLUGIN}/{OLD}/a.xplane.pb.gz")
    place.put(f"{PLUGIN}/{NEW}/b_1.profile", f"{PLUGIN}/{NEW}/.cached_tools.json")
    place.put(f"{PLUGIN}/empty/cache_version.txt", f"{PLUGIN}/.h/a.xplane.pb", f"{PLUGIN}/file")
    for url in (place.url, f"{place.url}/", f"{place.url}/{PLUGIN}"):
        repository = Repository(url, **place.options)
        assert repository.root == f"{place.url}/{PLUGIN}"
        result = repository.sessions()
        assert names(result) == [NEW, OLD]
        assert result[0].path == f"{place.url}/{PLUGIN}/{NEW}"
    assert [file.host for file in result[0].hosts()] == ["b_1"]
    assert result[0].host("b:1").path == f"{place.url}/{PLUGIN}/{NEW}/b_1.profile"
    (file,) = repository.session(OLD).hosts()
    assert file.path.endswith("/a.xplane.pb")
    with pytest.raises(NotFoundError, match=f"there is: {NEW}, {OLD}"):
        repository.session("empty")


@on_s3
def test_sizes_and_times_come_from_the_listing(place):
    before = int(time.time()) - 1  # S3 tells whole seconds
    place.put(f"{PLUGIN}/{NEW}/a.xplane.pb", content=b"12345")
    place.put(f"{PLUGIN}/{NEW}/b.xplane.pb.gz", content=b"123")
    place.put(f"{PLUGIN}/{NEW}/notes.txt", content=b"none of a host")
    (session,) = place.repository().sessions()
    hosts = session.hosts()
    if place.requests:
        place.requests.since()
    result = extent_of(hosts)
    assert result.bytes == 8
    assert before <= result.modified <= time.time() + 1
    if place.requests:
        assert place.requests.since() == []


def test_what_the_file_system_does_not_tell_is_not_known():
    files = [HostFile("a", "memory://a", {}, None, FileStatus(5, 10.0))]
    assert extent_of(files) == Extent(5, 10.0)
    assert extent_of([*files, HostFile("b", "x", {}, None, FileStatus(None, 20.0))]) == Extent(
        None, 20.0
    )
    unknown = extent_of([*files, HostFile("b", "x", {}, None, FileStatus(7, None))])
    assert unknown.as_json() == {"bytes": 12, "modified": None}
    assert extent_of([]).as_json() == {"bytes": 0, "modified": None}
    assert Extent(1, 1e30).as_json() == {"bytes": 1, "modified": None}


def test_an_empty_place_has_no_sessions(place):
    assert place.repository().sessions() == []
    assert place.repository().runs() == []
    assert place.repository().root == f"{place.url}/{PLUGIN}"


def test_nested_runs(place):
    place.put(f"{PLUGIN}/{NEW}/a.xplane.pb", f"train/{PLUGIN}/{OLD}/a.xplane.pb")
    place.put(f".h/{PLUGIN}/{OLD}/a.xplane.pb", "train/checkpoint/x")
    assert names(place.repository().runs()) == [NEW, f"train/{OLD}"]
    run = place.repository().session(f"train/{OLD}")
    assert run.path == f"{place.url}/train/{PLUGIN}/{OLD}"
    assert [file.host for file in run.hosts()] == ["a"]


def test_names_that_are_no_dates_are_ordered_by_time(place):
    for name in ("b", "c", "a"):
        place.put(f"{PLUGIN}/{name}/vm.xplane.pb")
    result = place.repository().sessions()
    assert sorted(names(result)) == ["a", "b", "c"]
    if place.requests is None:  # moto's clock has seconds
        assert names(result) == ["a", "c", "b"]


@on_s3
def test_stamps_follow_the_content(place):
    name = f"{PLUGIN}/s/vm.xplane.pb"
    place.put(name)
    session = place.repository().session("s")
    (file,) = session.hosts()
    again = place.repository().session("s")
    assert (again.stamp(), again.hosts()[0].stamp()) == (session.stamp(), file.stamp())
    assert hash(file.stamp()) == hash(again.hosts()[0].stamp())
    (listed,) = place.repository().sessions()
    assert (listed.stamp(), listed.hosts()[0].stamp()) == (session.stamp(), file.stamp())
    place.put(name, content=b"y")
    later = place.repository().session("s")
    assert later.stamp() != session.stamp()
    assert later.hosts()[0].stamp() != file.stamp()


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_one_listing_tells_of_all_sessions_and_hosts(place):
    root = f"{place.path}/{PLUGIN}"
    keys = [f"{root}/s{session}/h{host}.xplane.pb" for session in range(20) for host in range(8)]
    place.system.pipe(dict.fromkeys(keys, b"x"))
    place.requests.since()
    result = place.repository().sessions()
    stamps = {file.stamp() for session in result for file in session.hosts()}
    assert (len(result), len(stamps)) == (20, 160)
    assert [session.stamp() for session in result]
    assert len(place.requests.since()) <= 4
    assert len(place.repository().session("s3").hosts()) == 8
    assert len(place.requests.since()) <= 4


@on_s3
def test_a_new_session(place):
    with place.repository().create_session("s") as session:
        with pytest.raises(ExistsError, match="is being written at this moment"):
            place.repository().create_session("s")
        file = session.write("a:1", lambda stream: stream.write(b"abc"))
        assert [result.host for result in place.repository().session("s").hosts()] == ["a_1"]
    assert file.path == f"{place.url}/{PLUGIN}/s/a_1.xplane.pb"
    assert file.stamp() == place.repository().session("s").host("a_1").stamp()
    assert place.files() == [f"{PLUGIN}/s/a_1.xplane.pb"]
    with pytest.raises(ExistsError, match="has files already"):
        place.repository().create_session("s")


@on_s3
def test_another_who_claims_in_the_same_moment(place, monkeypatch):
    look = RemoteClaim._refuse_files

    def between(act):
        """Let ``act`` happen after the first look of the next claim."""

        def first_look(claim):
            monkeypatch.setattr(RemoteClaim, "_refuse_files", look)
            look(claim)
            act()

        monkeypatch.setattr(RemoteClaim, "_refuse_files", first_look)

    rivals = []
    between(lambda: rivals.append(place.repository().create_session("s")))
    with pytest.raises(ExistsError, match="is being written at this moment"):
        place.repository().create_session("s")
    rivals[0].close()

    def come_and_go():
        with place.repository().create_session("t") as session:
            session.write("vm", lambda stream: stream.write(b"theirs"))

    between(come_and_go)
    with pytest.raises(ExistsError, match="it has files already"):
        place.repository().create_session("t")
    assert place.files() == [f"{PLUGIN}/t/vm.xplane.pb"]


def test_a_new_session_without_files_leaves_nothing(place):
    def fail(session):
        with session:
            session.write("vm", lambda _stream: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        fail(place.repository().create_session("s"))
    assert place.files() == []


@on_s3
def test_what_somebody_else_put_there_is_kept(place):
    with place.repository().create_session("s") as session:
        place.put(f"{PLUGIN}/s/vm.xplane.pb", content=b"theirs")
        with pytest.raises(ExistsError):
            session.write("vm", lambda stream: stream.write(b"ours"))

        def late(stream):
            stream.write(b"ours")
            place.put(f"{PLUGIN}/s/other.xplane.pb", content=b"theirs")

        with pytest.raises(ExistsError):
            session.write("other", late)
    assert place.system.cat_file(f"{place.path}/{PLUGIN}/s/other.xplane.pb") == b"theirs"


def test_resolve_and_open(place, sessions):
    (profile,) = (sessions / "tf2_cnn").rglob("*.gz")
    place.put(f"{PLUGIN}/{OLD}/vm.xplane.pb.gz", content=profile.read_bytes())
    place.put(f"{PLUGIN}/{NEW}/vm.xplane.pb", content=gzip.decompress(profile.read_bytes()))
    url = f"{place.url}/{PLUGIN}/{OLD}/vm.xplane.pb.gz"
    assert resolve(place.url, session=OLD, storage_options=place.options) == url
    assert resolve(url, storage_options=place.options) == url
    assert resolve(f"{place.url}/{PLUGIN}/{OLD}", storage_options=place.options) == url
    newest = resolve(place.url, storage_options=place.options)
    assert newest == f"{place.url}/{PLUGIN}/{NEW}/vm.xplane.pb"
    with peakline.open(profile) as local:
        expected = local.tool("memory_profile").content
    engine = Engine()
    for session in place.repository().sessions():
        assert "memory_profile" in engine.tools(session)
        assert engine.tool(session, "memory_profile").content == expected
    engine.cache.clear()
    with pytest.raises(UsageError, match="is one file"):
        resolve(url, session="s", storage_options=place.options)
    with pytest.raises(NotFoundError, match="no such file or directory"):
        resolve(f"{place.url}/nothing", storage_options=place.options)


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_the_ranks_of_a_job_are_read_where_the_workers_are(place, tmp_path, monkeypatch):
    xspace_hosts(tmp_path, 2, steps=3, session=OLD)
    for path in sorted(tmp_path.rglob("*.pb")):
        place.put(f"{PLUGIN}/{OLD}/{path.name}", content=path.read_bytes())
    (session,) = place.repository().sessions()
    (local,) = Repository(str(tmp_path)).sessions()
    expected = json.loads(Engine().tool(local, "collectives").content)
    monkeypatch.setattr(ProfileCache, "lease", None)
    place.requests.since()
    with Engine(executor="processes", workers=1) as engine:
        assert json.loads(engine.tool(session, "collectives").content) == expected
    read = {seen for seen in place.requests.since() if seen.endswith(".pb")}
    assert len([seen for seen in read if seen.startswith("GET")]) == 2


@on_s3
def test_a_file_is_read_once_and_never_written_beside(place):
    content = bytes(range(256)) * 100_000
    place.put("plain", content=content)
    place.put("packed", content=gzip.compress(content, 1))
    place.put("empty", content=b"")
    for name in ("plain", "packed"):
        if place.requests:
            place.requests.since()
        file = SourceFile(f"{place.url}/{name}", storage_options=place.options)
        two = zip(file.blocks(1000), file.blocks(1000), strict=True)
        assert all(bytes(one) == bytes(other) for one, other in two)
        assert bytes(file.buffer) == content
        assert file.path == f"{place.url}/{name}"
        if place.requests:
            assert len([line for line in place.requests.since() if line.startswith("GET")]) <= 4
        file.close()
    for name, error, message in (
        ("empty", InputError, "the file is empty"),
        ("nothing", NotFoundError, "no such file"),
    ):
        with pytest.raises(error, match=f"{place.url}/{name}: {message}"):
            SourceFile(f"{place.url}/{name}", storage_options=place.options)


def test_a_caller_who_went_away_ends_the_reading(place):
    place.put("plain")
    deadline = Deadline()
    deadline.cancel()
    with within(deadline), pytest.raises(CancelledError):
        SourceFile(f"{place.url}/plain", storage_options=place.options)


@pytest.fixture
def unused_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and not listening: nobody answers
        yield bound.getsockname()[1]


def test_a_store_that_does_not_answer(s3, unused_port):
    _, options, _ = s3
    nobody = {"endpoint_url": f"http://127.0.0.1:{unused_port}"}
    options = {
        **options,
        "client_kwargs": nobody,
        "config_kwargs": {"retries": {"max_attempts": 0}},
    }
    with pytest.raises(InputError) as caught:
        Repository("s3://bucket/log", **options).sessions()
    assert "\n" not in str(caught.value)
    with pytest.raises((RemoteError, InputError)):
        Repository("s3://bucket/log", **options).create_session("s")
    with pytest.raises(InputError, match="cannot be read"):
        SourceFile("s3://bucket/log/f", storage_options=options)


def test_a_bucket_that_is_not_there(s3):
    _, options, _ = s3
    repository = Repository("s3://no-such-bucket/log", **options)
    assert repository.sessions() == []
    with pytest.raises(RemoteError, match="session 's' cannot be created: ") as caught:
        repository.create_session("s")
    assert "\n" not in str(caught.value)


def test_a_protocol_without_a_driver(monkeypatch):
    with pytest.raises(UsageError, match="nonsense"):
        resolve("nonsense://a/b")
    for name in ("gcsfs", "s3fs"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("s3", "s3a", "gs", "gcs"):
        monkeypatch.delitem(import_module("fsspec.registry")._registry, name, raising=False)
    for url, extra in (("s3://b/f", "s3"), ("gs://b/f", "gs")):
        for ask in (resolve, hosts, SourceFile):
            with pytest.raises(UsageError) as caught:
                ask(url)
            assert f"pip install 'peakline[{extra}]'" in str(caught.value)
            assert "\n" not in str(caught.value)


@each_row(
    ("url", "joined"),
    [
        ("s3://b", "s3://b/x"),
        ("s3://b/", "s3://b/x"),
        ("memory://", "memory://x"),
        ("zip://::s3://b/f.zip", "zip://x::s3://b/f.zip"),
        ("simplecache::s3://b/a", "simplecache::s3://b/a/x"),
    ],
)
def test_a_name_joins_the_first_link_of_a_chain(url, joined):
    assert _join(url, "x") == joined


def test_the_command_line_reads_a_url(s3, sessions, monkeypatch, capsys):
    endpoint, options, _ = s3
    system = fsspec.filesystem("s3", **options)
    system.mkdirs("cli", exist_ok=True)
    (profile,) = (sessions / "tf2_cnn").rglob("*.gz")
    system.pipe_file(f"cli/log/{PLUGIN}/{OLD}/vm.xplane.pb.gz", profile.read_bytes())
    for name, value in (
        ("ENDPOINT_URL", endpoint), ("ACCESS_KEY_ID", "a"), ("SECRET_ACCESS_KEY", "b"),
    ):  # fmt: skip
        monkeypatch.setenv(f"AWS_{name}", value)
    # A file system is made once for each set of options, and these tell nothing of the endpoint.
    type(system).clear_instance_cache()
    try:
        assert main(["sessions", "s3://cli/log", "--json"]) == 0
    finally:
        type(system).clear_instance_cache()
    out, err = capsys.readouterr()
    assert err == ""
    (row,) = json.loads(out)
    assert (row["session_id"], row["hosts"]) == (OLD, ["vm"])
    assert "memory_profile" in row["tools"]
