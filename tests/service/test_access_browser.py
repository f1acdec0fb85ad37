"""Host and Origin: by which name we are called, and whose page asks."""

import pytest
from tests.each_row import each_row

from peakline.errors import UsageError
from peakline.service.access import Access
from peakline.service.settings import Settings


def _access(tmp_path, **changes):
    return Access(Settings(roots=(str(tmp_path),), **changes))


@each_row(
    "host",
    [
        "localhost", "localhost:8080", "LOCALHOST:1", "localhost.", "localhost.:8080", "127.0.0.1",
        "127.0.0.1:8080", "[::1]", "[::1]:8080", "[0:0::1]:8080",
    ],
)  # fmt: skip
def test_the_names_of_this_machine_are_answered(host, tmp_path):
    assert _access(tmp_path).host_header_allowed(host)


@each_row(
    "host",
    [
        None, "", ":8080", "evil.example", "localhost.evil.example", "localhost:8080:1",
        "localhost:", "localhost:x", "localhost:99999", "localhost@evil.example", "127.0.0.2",
        "0.0.0.1", "[::]", "127.1", "0x7f000001", "192.168.0.7", "[fe80::1]", "localhost, evil",
        "localhost\t", " localhost", "l\u00f6calhost", "localhost..", "[::1",
    ],
)  # fmt: skip
def test_other_names_are_not(host, tmp_path):
    assert not _access(tmp_path).host_header_allowed(host)


def test_allowed_hosts_come_with_or_without_a_port(tmp_path):
    access = _access(
        tmp_path, allowed_hosts=("Peakline.Example.", "other.example:9000", "[fd00::1]")
    )
    assert access.host_header_allowed("peakline.example")
    assert access.host_header_allowed("PEAKLINE.example.:443")
    assert access.host_header_allowed("other.example:9000")
    assert not access.host_header_allowed("other.example")
    assert not access.host_header_allowed("other.example:9001")
    assert access.host_header_allowed("[fd00::1]:8080")


def test_where_others_can_reach_the_server_an_address_is_a_name_and_a_foreign_name_is_none(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("socket.gethostname", lambda: "Trainer-7")
    access = _access(tmp_path, host="::", insecure=True)
    for host in ("192.168.0.7:8080", "[fd00::1]:8080", "localhost", "trainer-7:8080"):
        assert access.host_header_allowed(host), host
    for host in ("evil.example", "192.168.0.7.evil.example", "192.168.7"):
        assert not access.host_header_allowed(host), host


def test_a_bound_name_is_a_name(tmp_path):
    access = _access(tmp_path, host="box.lan", insecure=True)
    assert access.host_header_allowed("box.lan:8080")
    assert not access.host_header_allowed("other.lan:8080")


@each_row(
    ("origin", "host"),
    [
        (None, "localhost:8080"),
        ("http://localhost:8080", "localhost:8080"),
        ("http://LOCALHOST:8080", "localhost:8080"),
        ("http://localhost", "localhost"),
        ("http://localhost", "localhost:80"),
        ("http://[::1]:8080", "[0:0::1]:8080"),
        ("https://page.example", "localhost:8080"),
        ("https://page.example:443", "localhost:8080"),
        ("http://dev.example:3000", "localhost:8080"),
    ],
)
def test_own_and_allowed_origins_may_change_things(origin, host, tmp_path):
    access = _access(tmp_path, allowed_origins=("https://Page.example/", "http://dev.example:3000"))
    assert access.origin_allowed(origin, host)


@each_row(
    ("origin", "host"),
    [
        ("null", "localhost:8080"),
        ("", "localhost:8080"),
        ("http://localhost:8081", "localhost:8080"),
        ("https://localhost:8080", "localhost:8080"),
        ("http://localhost", "localhost:8080"),
        ("http://127.0.0.1:8080", "localhost:8080"),
        ("http://evil.example", "localhost:8080"),
        ("http://page.example", "localhost:8080"),
        ("https://page.example:8443", "localhost:8080"),
        ("https://page.example.evil.example", "localhost:8080"),
        ("https://evil.example/https://page.example", "localhost:8080"),
        ("https://page.example@evil.example", "localhost:8080"),
        ("https://page.example https://evil.example", "localhost:8080"),
        ("file://", "localhost:8080"),
        ("chrome-extension://abc", "localhost:8080"),
        ("localhost:8080", "localhost:8080"),
        ("http://", ""),
        ("http://", None),
    ],
)
def test_other_origins_may_not(origin, host, tmp_path):
    assert not _access(tmp_path, allowed_origins=("https://page.example",)).origin_allowed(
        origin, host
    )


def test_with_a_certificate_the_own_origin_is_https(tmp_path):
    access = _access(tmp_path, tls_cert="c", tls_key="k")
    assert access.origin_allowed("https://localhost:8080", "localhost:8080")
    assert access.origin_allowed("https://localhost", "localhost")
    assert not access.origin_allowed("http://localhost:8080", "localhost:8080")


@each_row("origin", ["*", "null", "page.example", "ftp://x", "https://x/path", ""])
def test_an_allowed_origin_that_is_none_is_refused_at_the_start(origin, tmp_path):
    with pytest.raises(UsageError, match="--allow-origin"):
        _access(tmp_path, allowed_origins=(origin,))


@each_row("host", ["*", "https://x", "a b", "", "x:y"])
def test_an_allowed_host_that_is_none_is_refused_at_the_start(host, tmp_path):
    with pytest.raises(UsageError, match="--allow-host"):
        _access(tmp_path, allowed_hosts=(host,))
