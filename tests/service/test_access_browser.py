"""Access from browsers, and the log of every access."""

import json
import logging
import threading

import pytest
from tests.each_row import each_row

from peakline.errors import UsageError
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "access.log"


@pytest.fixture
def log(path):
    made = AccessLog(str(path))
    yield made
    made.close()


def _lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _record(**changes):
    return {
        "face": "http", "method": "GET /x", "peer": "127.0.0.1", "code": "200", "seconds": 0.5,
    } | changes  # fmt: skip


def test_a_line_has_what_is_known_and_leaves_out_what_is_not(log, path):
    log.write(**_record(sent_bytes=7, session="s", tool="t", host="h", request_id="r"))
    log.write(**_record())
    first, second = _lines(path)
    assert first.pop("time").endswith("Z")
    assert first == {
        "face": "http", "method": "GET /x", "peer": "127.0.0.1", "code": "200", "seconds": 0.5,
        "bytes": 7, "session": "s", "tool": "t", "host": "h", "request_id": "r",
    }  # fmt: skip
    assert set(second) == {"time", "face", "method", "peer", "code", "seconds", "bytes"}


def test_text_of_callers_is_cut_and_holds_no_control_characters(log, path):
    log.write(**_record(session="\x1b[2J\n\r\x00\u202e\udcff", tool="x" * 10_000))
    text = path.read_text(encoding="ascii")
    assert text.count("\n") == 1
    assert all(character.isprintable() for character in text.rstrip("\n"))
    assert len(text) < 1000


def test_an_unexpected_error_is_kept_with_its_traceback_and_bounded(log, path):
    log.failure("id", ValueError("x" * 100_000))
    (line,) = _lines(path)
    assert (line["error"], line["request_id"]) == ("ValueError", "id")
    assert len(line["traceback"]) == 8000


def test_libraries_complain_in_the_same_log_until_it_is_closed(log, path):
    level = logging.getLogger().level
    log.listen()
    logging.getLogger("uvicorn.error").info("chatter")
    logging.getLogger("uvicorn.error").error("trouble")
    log.close()
    logging.getLogger("uvicorn.error").handle(
        logging.makeLogRecord({"msg": "later", "levelno": logging.INFO})
    )
    (line,) = _lines(path)
    assert (line["logger"], line["message"]) == ("uvicorn.error", "trouble")
    assert logging.getLogger().level == level


def test_what_is_hidden_stands_in_no_line(path):
    log = AccessLog(str(path), hide=lambda text: text.replace("s3cret", "-"))
    log.listen()
    try:
        log.failure("1", ValueError("s3cret"))
        log.event("reload failed", reason="s3cret", count=1)
        log.write(**_record(session="x" * 196 + "s3cret"))
        logging.getLogger("anybody").error("s3cret")
    finally:
        log.close()
    assert "s3" not in path.read_text()
    assert path.read_text().count("\n") == 4


def test_a_library_with_a_level_of_its_own_does_not_chatter(log, path):
    chatty = logging.getLogger("tests.chatty")
    level = chatty.level
    log.listen()
    try:
        chatty.setLevel(logging.INFO)
        chatty.info("chatter")
        chatty.error("trouble")
    finally:
        chatty.setLevel(level)
        log.close()
    assert [line["message"] for line in _lines(path)] == ["trouble"]


def test_lines_of_many_threads_stay_whole(log, path):
    threads = [
        threading.Thread(target=lambda: [log.write(**_record(tool="y" * 150)) for _ in range(200)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_lines(path)) == 1600


def test_it_appends_and_opens_anew(log, path, tmp_path):
    log.write(**_record(tool="old"))
    path.rename(tmp_path / "rotated")
    log.write(**_record(tool="still old"))
    log.reopen()
    log.write(**_record(tool="new"))
    assert [line["tool"] for line in _lines(tmp_path / "rotated")] == ["old", "still old"]
    assert [line["tool"] for line in _lines(path)] == ["new"]
    again = AccessLog(str(path))
    again.write(**_record(tool="newer"))
    again.close()
    assert [line["tool"] for line in _lines(path)] == ["new", "newer"]


def test_it_goes_to_standard_error_or_nowhere(capsys):
    AccessLog("-").write(**_record())
    AccessLog("off").write(**_record())
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["code"] == "200"


def test_a_disk_that_is_full_drops_lines_and_counts_them():
    log = AccessLog("/dev/full")
    log.write(**_record())
    log.write(**_record())
    assert log.dropped == 2
    log.close()


@each_row("name", ["missing/access.log", ".", "a\x00b"])
def test_a_file_that_cannot_be_written_is_refused_in_a_line(tmp_path, name):
    with pytest.raises(UsageError, match="--access-log"):
        AccessLog(str(tmp_path / name))
