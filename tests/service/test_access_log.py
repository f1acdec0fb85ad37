"""The access log: one safe line a request, and it never ends the service."""

import json
import logging
import threading

import pytest
from tests.each_row import each_row

from peakline.errors import UsageError
from peakline.service.access_log import AccessLog


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
