"""What is refused, or told, before a server binds anything."""

import os
import sys

import pytest
from cryptography.hazmat.primitives import serialization
from tests.each_row import each_row
from tests.service.certificates import Authority

from peakline.errors import UsageError
from peakline.service.settings import (
    Settings,
    _control_group_bytes,
    check_settings,
    default_cache_bytes,
    parse_worker,
)

_ANYWHERE = "0.0.0." + "0"


def _check(tmp_path, **changes):
    check_settings(Settings(**{"roots": (str(tmp_path),)} | changes))


@each_row("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST"])
def test_this_machine_alone_needs_no_guard(tmp_path, host):
    _check(tmp_path, host=host)


@each_row("host", [_ANYWHERE, "::", "192.0.2.7", "2001:db8::1", "::ffff:192.0.2.7"])
def test_anything_else_needs_a_token_or_the_word_insecure(tmp_path, host):
    with pytest.raises(UsageError, match="--token-file FILE, or --insecure"):
        _check(tmp_path, host=host)
    _check(tmp_path, host=host, insecure=True)
    _check(tmp_path, host=host, token_file=str(tmp_path / "t"))
    _check(tmp_path, host=host, token="x")  # noqa: S106


def test_a_name_is_what_it_stands_for(tmp_path, monkeypatch):
    def stands_for(*addresses):
        result = [(2, 1, 6, "", (address, 0)) for address in addresses]
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: result)

    stands_for("127.0.0.1", "::1")
    _check(tmp_path, host="box.lan")
    for addresses in (("192.0.2.7",), ("127.0.0.1", "192.0.2.7"), ("fe80::1%eth0",)):
        stands_for(*addresses)
        with pytest.raises(UsageError, match="others could reach"):
            _check(tmp_path, host="box.lan")


def test_a_name_that_stands_for_nothing_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no address for that name"):
        _check(tmp_path, host="no such host")


@each_row(
    ("root", "reason"),
    [
        ("missing", "no such directory"),
        ("file", "is no directory"),
        ("", "is no log directory"),
        ("a\x00b", "is no log directory"),
        ("nosuch://x", "no file system is called 'nosuch'"),
        ("simplecache::s3://x", "a chain of file systems"),
        ("gs://bucket/logs", r"pip install 'peakline\[gs\]'"),
    ],
)
def test_a_root_that_cannot_be_served_is_refused(tmp_path, monkeypatch, root, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(UsageError, match=reason) as refused:
        _check(tmp_path, roots=(root,))
    assert "\n" not in str(refused.value)


def test_roots_of_file_systems_whose_driver_is_there_are_taken(tmp_path):
    _check(tmp_path, roots=("memory://logs", "s3://bucket/logs", str(tmp_path)))
    with pytest.raises(UsageError, match="at least one"):
        _check(tmp_path, roots=())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_root_that_may_not_be_read_is_refused(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with pytest.raises(UsageError, match="may not read"):
        _check(tmp_path, roots=(str(closed),))


@each_row(
    ("change", "named"),
    [
        ({"grpc_port": -1}, "--grpc-port"),
        ({"http_port": 65536}, "--http-port"),
        ({"profiler_port": 0}, "--profiler-port"),
        ({"grpc_port": 8080}, "--grpc-port and --http-port"),
        ({"max_message_bytes": 1 << 31}, "--max-message"),
        ({"max_message_bytes": 0}, "--max-message"),
        ({"max_upload_bytes": 0}, "--max-upload"),
        ({"max_unpacked_bytes": 0}, "--max-unpacked"),
        ({"max_concurrent": 0}, "--max-concurrent"),
        ({"max_queued": -1}, "--max-queued"),
        ({"cache_bytes": -1}, "--cache"),
        ({"sql_memory_bytes": 1}, "--sql-memory"),
        ({"request_timeout_s": 0}, "--request-timeout"),
        ({"max_capture_s": float("inf")}, "--max-capture"),
        ({"grace_s": float("nan")}, "--grace"),
        ({"host": ""}, "--host"),
    ],
)
def test_numbers_out_of_range_name_their_option(tmp_path, change, named):
    with pytest.raises(UsageError, match=f"^{named}"):
        _check(tmp_path, **change)


def test_certificate_and_key_must_fit(tmp_path):
    authority = Authority(tmp_path, "authority")
    one, other = authority.issue("one"), authority.issue("other")
    cert, key, ca = str(one.certificate_path), str(one.key_path), str(authority.path)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        serialization.load_pem_private_key(one.key, None).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"phrase"),
        )
    )
    _check(tmp_path, tls_cert=cert, tls_key=key)
    _check(tmp_path, tls_cert=cert, tls_key=key, tls_client_ca=ca)
    refusals = {
        "cannot be used together": [
            {"tls_cert": cert, "tls_key": str(other.key_path)},
            {"tls_cert": key, "tls_key": key},
            {"tls_cert": cert, "tls_key": cert},
            {"tls_cert": cert, "tls_key": str(locked)},
        ],
        "belong together": [{"tls_cert": cert}, {"tls_key": key}],
        "needs --tls-cert": [{"tls_client_ca": ca}],
        "cannot be read": [
            {"tls_cert": str(tmp_path / "no"), "tls_key": key},
            {"tls_cert": cert, "tls_key": str(tmp_path)},
        ],
        "no certificate": [{"tls_cert": cert, "tls_key": key, "tls_client_ca": key}],
    }
    for reason, changes in refusals.items():
        for change in changes:
            with pytest.raises(UsageError, match=reason) as refused:
                _check(tmp_path, **change)
            assert "\n" not in str(refused.value)


@each_row(
    ("text", "worker"),
    [
        ("w0=10.0.0.1:9000", ("w0", "10.0.0.1:9000")),
        ("a:1=localhost:2", ("a:1", "localhost:2")),
        ("v6=[::1]:2", ("v6", "[::1]:2")),
    ],
)
def test_a_worker_is_a_name_and_an_address(text, worker):
    assert parse_worker(text) == worker


@each_row(
    "text",
    ["", "w0", "w0=", "=a:1", "../x=a:1", "w0=a", "w0=a:b", "w0=a:1:2", ".w=a:1", "w0=a/b:1"],
)
def test_anything_else_is_no_worker(text):
    with pytest.raises(UsageError, match="--worker"):
        parse_worker(text)


def test_the_cache_takes_at_most_a_quarter_of_the_memory(monkeypatch):
    monkeypatch.setattr("peakline.service.settings._physical_bytes", lambda: 1 << 40)
    monkeypatch.setattr("peakline.service.settings._control_group_bytes", list)
    assert default_cache_bytes() == 2 << 30
    monkeypatch.setattr("peakline.service.settings._control_group_bytes", lambda: [1 << 30])
    assert default_cache_bytes() == 256 << 20
    monkeypatch.setattr("peakline.service.settings._physical_bytes", lambda: 0)
    monkeypatch.setattr("peakline.service.settings._control_group_bytes", list)
    assert default_cache_bytes() == 2 << 30


def test_limits_of_every_control_group_above_count(tmp_path):
    mounted, membership = tmp_path / "cgroup", tmp_path / "membership"
    inner = mounted / "system" / "peakline"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n", encoding="ascii")
    (inner.parent / "memory.max").write_text("4096\n", encoding="ascii")
    old = mounted / "memory" / "docker"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("8192\n", encoding="ascii")
    membership.write_text("0::/system/peakline\n", encoding="ascii")
    assert _control_group_bytes(str(mounted), str(membership)) == [4096]
    membership.write_text("4:cpu:/x\n3:memory:/docker\nnonsense\n", encoding="ascii")
    assert _control_group_bytes(str(mounted), str(membership)) == [8192]
    assert _control_group_bytes(str(mounted), str(tmp_path / "missing")) == []


@each_row(
    ("changes", "reason"),
    [
        ({"executor": "fork"}, "no executor 'fork'"),
        ({"hosts_at_once": 0}, "workers 0: at least 1"),
        ({"scheduler": "tcp://a:1"}, "a scheduler is for the executor dask"),
    ],
)
def test_an_executor_that_cannot_be_is_refused(tmp_path, changes, reason):
    _check(tmp_path, executor="processes", hosts_at_once=2)
    with pytest.raises(UsageError, match=reason):
        _check(tmp_path, **changes)
