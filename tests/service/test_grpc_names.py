"""Names in requests: none of them reaches a file that is not a session's."""

import os

import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.test_grpc_analysis import failure

SESSION = SESSIONS["tf2_cnn"]
TRICKS = {
    "parent": "..", "parents": "../../../../etc", "escaped": "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "here": ".", "hidden": ".cached", "absolute": "/etc/passwd", "separator": "a/b",
    "backslash": "..\\..\\etc", "null": "a\x00b", "newline": "a\nb", "escape": "\x1b[2J",
    "long": "a" * 5000, "wide": "\u2025\u2215etc", "url": "file:///etc/passwd", "variable": "$HOME",
    "home": "~root", "glob": "*",
}  # fmt: skip
REFUSED = {"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED"}


@pytest.fixture
def served(serve, logdir):
    (logdir / "secret.xplane.pb").write_bytes(b"secret")
    return serve(logdir)


def tricks():
    return each_row("trick", TRICKS.values())


@each_row("field", ["session_id", "host_name", "tool_name"])
@tricks()
def test_tool_data_takes_names_only(served, field, trick):
    fields = {"session_id": SESSION, "host_name": "vm", "tool_name": "memory_profile"}
    status, details = failure(served.client.call, "GetSessionToolData", **fields | {field: trick})
    assert status in REFUSED
    assert "secret" not in details
    assert details.isascii()
    assert details.isprintable()
    assert len(details) <= 1000


@each_row("method", ["EnumSessions", "GetSessionToolData"])
@tricks()
def test_a_root_lies_under_a_served_one(served, logdir, method, trick):
    status, details = failure(served.client.call, method, repository_root=trick)
    assert status in REFUSED
    assert str(logdir) not in details


def refused_without_a_trace(served, logdir, **fields):
    """The capture is refused and nothing has been made, in the root or beside it."""
    before = sorted(logdir.parent.glob("**/*"))
    request = {"opts": {"duration_ms": 10}}
    fields = {"session_id": "new", "hosts": ["localhost"], "request": request} | fields
    status, _ = failure(served.client.call, "NewSession", **fields)
    assert status in REFUSED
    assert sorted(logdir.parent.glob("**/*")) == before


@each_row("name", TRICKS.keys() - {"wide", "escaped", "variable", "home", "glob"})
def test_a_capture_takes_no_trick_for_a_session_id(served, logdir, name):
    refused_without_a_trace(served, logdir, session_id=TRICKS[name])


@tricks()
def test_a_capture_takes_no_trick_for_a_root(served, logdir, trick):
    refused_without_a_trace(served, logdir, repository_root=trick)


@tricks()
def test_a_capture_takes_no_trick_for_a_host(served, logdir, trick):
    refused_without_a_trace(served, logdir, hosts=[trick])


@tricks()
def test_names_inside_the_inner_request_are_checked_as_well(served, logdir, trick):
    before = sorted(logdir.parent.glob("**/*"))
    request = {
        "opts": {"duration_ms": 10, "override_hostname": trick},
        "repository_root": str(logdir),
        "session_id": "new",
        "host_name": "not-allowed.example",
    }
    for change in ({"repository_root": trick}, {"session_id": trick}, {"host_name": trick}, {}):
        status, _ = failure(served.client.call, "NewSession", request=request | change)
        assert status in REFUSED
    assert sorted(logdir.parent.glob("**/*")) == before


def test_links_out_of_the_root_are_not_followed(serve, logdir, tmp_path):
    outside = tmp_path / "outside"
    (outside / "plugins" / "profile").mkdir(parents=True)
    profiles = logdir / "plugins" / "profile"
    os.rename(profiles / SESSION, outside / "plugins" / "profile" / "theirs")  # noqa: PTH104
    (profiles / "linked").symlink_to(outside / "plugins" / "profile" / "theirs")
    (profiles / "files").mkdir()
    (profiles / "files" / "vm.xplane.pb.gz").symlink_to(
        outside / "plugins" / "profile" / "theirs" / "vm.xplane.pb.gz"
    )
    (logdir / "other").symlink_to(outside)
    client = serve(logdir).client
    ask = {"tool_name": "memory_profile"}
    for fields in (
        {"session_id": "linked", **ask},
        {"session_id": "files", **ask},
        {"session_id": "files", "host_name": "vm", **ask},
        {"session_id": "theirs", "repository_root": str(outside), **ask},
        {"session_id": "theirs", "repository_root": f"{logdir}/other", **ask},
        {"session_id": "theirs", "repository_root": f"{logdir}/../outside", **ask},
    ):
        status, details = failure(client.call, "GetSessionToolData", **fields)
        assert status == "PERMISSION_DENIED"
        assert "theirs" not in details
    assert "linked" not in [session.session_id for session in client.call("EnumSessions").sessions]


def test_a_repository_under_the_root_is_served(serve, logdir):
    """TensorBoard's plugin sends the directory of a nested run."""
    nested = logdir / "train" / "plugins" / "profile"
    nested.parent.mkdir(parents=True)
    (logdir / "plugins" / "profile").rename(nested)
    answer = serve(logdir).client.call("EnumSessions", repository_root=str(nested))
    assert SESSION in [session.session_id for session in answer.sessions]


def test_with_several_roots_one_must_be_named(serve, logdir, sample_logdir):
    client = serve(logdir, sample_logdir).client
    status, details = failure(client.call, "EnumSessions")
    assert (status, "repository_root" in details) == ("INVALID_ARGUMENT", True)
    assert client.call("EnumSessions", repository_root=str(logdir)).sessions
