"""Servers from before `emit_xspace`, which store what they record, or send files of tools."""

from pathlib import Path

import pytest
from tests.capture.peers import answer_of, peer, space
from tests.capture.requests import ID, files_of, good, request_for, session_directory

from peakline.capture import capture
from peakline.errors import RemoteError


def save_as_old(request, name=None, content=None):
    """What a server from before emit_xspace does."""
    directory = Path(request.repository_root) / request.session_id
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{(name or request.host_name).replace(':', '_')}.xplane.pb"
    file.write_bytes(space().SerializeToString() if content is None else content)


def test_an_old_server_that_saves_on_a_shared_disk(repository):
    def behave(request, *_):
        save_as_old(request)
        return b""

    with peer(behave) as worker:
        result = capture(request_for(worker.address, names=["old:1"]), repository)
    (outcome,) = result.outcomes
    assert (outcome.state, outcome.error) == ("saved_by_host", "")
    assert outcome.size == space().ByteSize()
    assert files_of(repository) == [f"plugins/profile/{ID}/old_1.xplane.pb"]


def test_an_old_server_with_a_disk_of_its_own(repository):
    with peer(lambda *_: b"") as worker:
        with pytest.raises(RemoteError, match="the host stored its profile on its own disk"):
            capture(request_for(worker.address), repository)
        assert len(worker.requests) == 1
    assert not session_directory(repository).exists()


def test_an_old_server_that_saved_an_empty_file(repository):
    # Profiles above 2 GiB end like this.
    def behave(request, *_):
        save_as_old(request, content=b"")
        return b""

    with peer(behave) as worker, pytest.raises(RemoteError, match="the host stored an empty file"):
        capture(request_for(worker.address), repository)


def test_an_old_server_saves_even_an_empty_trace(repository):
    def behave(request, *_):
        save_as_old(request, content=space(0).SerializeToString())
        return answer_of(empty_trace=True)

    with peer(behave) as worker:
        result = capture(request_for(worker.address, attempts=1), repository)
    assert result.empty_trace
    assert not session_directory(repository).exists()


TOOL_FILES = [
    {"name": "trace", "data": b"1"},
    {"name": "../../../../escaped", "data": b"2"},
    {"name": "/etc/passwd", "data": b"3"},
    {"name": "..", "data": b"4"},
    {"name": "", "data": b"5"},
    {"name": "b\\c\x00\n\x1b", "data": b"6"},
    {"name": "other.xplane.pb", "data": b"7"},
    {"name": "x_tf_stats_helper_result", "data": b"8"},
    {"name": "trace", "data": b"9"},
    {"name": "é" * 150, "data": b"10"},
]


def test_files_of_old_tools_are_written_beside(repository, tmp_path):
    with peer(lambda *_: answer_of(space(), tool_data=TOOL_FILES)) as worker:
        result = capture(request_for(worker.address, names=["w:1"]), repository)
    written = {name.rpartition("/")[2] for name in files_of(repository)}
    assert {"w_1.xplane.pb", "w_1.trace", "w_1._.._.._.._escaped", "w_1._etc_passwd"} <= written
    assert "w_1.b_c___" in written
    assert not any(name.endswith(("helper_result", "other.xplane.pb")) for name in written)
    assert all(name.startswith("w_1.") for name in written)
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {
        session_directory(repository)
    }
    assert (session_directory(repository) / "w_1.trace").read_bytes() == b"1"
    assert [file.host for file in repository.session(ID).hosts()] == ["w_1"]
    (outcome,) = result.outcomes
    assert outcome.state == "stored"
    # What could not be kept is told: the name of a profile, and the second trace.
    assert "other.xplane.pb" in outcome.error
    assert outcome.error.count("was not stored") >= 2
    assert outcome.error.isprintable()


def test_tool_files_alone_are_no_profile_and_leave_nothing(repository):
    with (
        peer(lambda *_: answer_of(tool_data=[{"name": "trace", "data": b"1"}])) as worker,
        pytest.raises(RemoteError, match="its own disk and sent only trace"),
    ):
        capture(request_for(worker.address, names=["w"]), repository)
    assert files_of(repository) == []
    with repository.create_session(ID):
        pass  # the id is free again


def test_tool_files_of_a_host_that_failed_stay_beside_another_s_profile(repository):
    def old(*_):
        return answer_of(tool_data=[{"name": "trace", "data": b"1"}])

    with peer(old) as first, peer(good) as second:
        capture(request_for(first.address, second.address, names=["a", "b"]), repository)
    place = f"plugins/profile/{ID}"
    assert files_of(repository) == [f"{place}/a.trace", f"{place}/b.xplane.pb"]
