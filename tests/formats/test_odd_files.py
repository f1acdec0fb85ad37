"""Files that are no profile, and profiles in other clothes: each with its one clear line."""

import gzip
import io
import os
import sys
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.formats.format_checks import content, content_or_error, error_of
from tests.formats.format_samples import ALL, BY_NAME, ONE_OF_EACH, every

import peakline
from peakline.errors import InputError, UnknownFormatError

_XSPACE = "sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"


# Empty, tiny, and no file at all.


def test_an_empty_file(write):
    path = write(b"")
    assert error_of(path) == f"{path}: the file is empty"
    assert error_of(write(gzip.compress(b"")), "--json") == f"{path}: the file is empty"


def test_files_of_one_byte(write):
    for byte in range(256):
        path = write(bytes([byte]))
        if byte == ord("["):
            # A trace may be an array whose end is missing.
            assert content(path)[0] == "chrome_trace"
            continue
        with pytest.raises(InputError, match="profile: "):
            peakline.open(str(path))
    assert error_of(write(b"\x0a")).endswith("no out-of-memory report")


def test_a_directory_without_profiles(tmp_path):
    assert "no sessions here" in error_of(tmp_path)
    assert "no sessions here" in error_of(tmp_path, "--strict")


def test_no_such_file(tmp_path):
    assert "no such file" in error_of(tmp_path / "nowhere.pb")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        assert "neither a file nor a directory" in error_of(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may read any file")
def test_a_file_that_may_not_be_read(write):
    path = write(BY_NAME["graph.pb"].file)
    path.chmod(0)
    assert error_of(path) == f"{path}: cannot be read: Permission denied"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="the system has no such file")
def test_a_file_whose_reading_fails():
    assert "/proc/self/mem: cannot be read: " in error_of("/proc/self/mem")


# Standard input, and a file that is still written.


class _Stdin:
    def __init__(self, data: bytes):
        self.buffer = io.BytesIO(data)


@every(ALL)
def test_standard_input(write, monkeypatch, made):
    expected = content(write(made.file, made.name))
    for data in (made.file, gzip.compress(made.file)):
        monkeypatch.setattr(sys, "stdin", _Stdin(data))
        assert content("-") == expected


def test_standard_input_with_nothing_in_it(monkeypatch):
    monkeypatch.setattr(sys, "stdin", _Stdin(b""))
    assert error_of("-") == "-: the file is empty"
    monkeypatch.setattr(sys, "stdin", _Stdin(b"\x1f\x8b\x08"))
    assert error_of("-").startswith("-: damaged gzip file")
    monkeypatch.setattr(sys, "stdin", None)
    assert error_of("-") == "-: standard input is closed"


@every(ONE_OF_EACH.values())
def test_a_file_that_grows_while_it_is_read(write, made):
    path = write(made.file, made.name)
    expected = content(path)
    with peakline.open(str(path)) as profile:
        with path.open("ab") as file:
            file.write(made.file[: len(made.file) // 2])
        rows = {t: profile.columns(t).to_pylist() for t in profile.tables if t != "warnings"}
    assert rows == expected[1]


# Compressed.


@every(ONE_OF_EACH.values())
def test_a_file_that_expands_too_much(write, made):
    path = write(gzip.compress(made.file + b" " * 3_000_000), "bomb.gz")
    assert error_of(path, "--max-unpacked", "10KB") == (
        f"{path}: expands to more than 10000 bytes; "
        "--max-unpacked allows more if it is what it should be"
    )


def test_a_bomb_goes_off_nowhere(write, monkeypatch):
    """The limit that holds without the option, made small."""
    monkeypatch.setattr("peakline.formats.common.files._LEAST_LIMIT", 4 << 20)
    log = BY_NAME["tf1_control_flow.log"].data
    path = write(gzip.compress(log + b"nothing\n" * 2_000_000))
    assert f"{path}: expands to more than " in error_of(path)
    monkeypatch.setattr("peakline.formats.common.files._LEAST_LIMIT", 32 << 20)
    assert content(path) == content(write(log))


# Text in other clothes.


_TEXTS = [s for s in ALL if s.kind == "text" or s.name.endswith(".json")]


@every(_TEXTS)
def test_line_ends_and_a_byte_order_mark_change_nothing(write, made):
    expected = content(write(made.data))
    assert content(write(b"\xef\xbb\xbf" + made.data)) == expected
    assert content(write(made.data.replace(b"\n", b"\r\n"))) == expected


@every(_TEXTS)
@each_row("encoding", ["utf-16", "utf-32"])
def test_a_wide_encoding_is_named(write, made, encoding):
    path = write(made.data.decode().encode(encoding))
    with pytest.raises(UnknownFormatError, match="text in UTF-16 or UTF-32: save it as UTF-8"):
        peakline.open(str(path))


@every([s for s in _TEXTS if not s.name.endswith(".log")])
def test_zero_bytes_in_text(write, made):
    """An error with its place, or a warning: never another answer in silence."""
    expected = content(write(made.data))
    end = made.data.rindex(b"\n")
    for at in (end, end + 2):
        answer, error = content_or_error(write(made.data[:at] + b"\0" + made.data[at:]))
        if answer is None:
            assert "line " in error
        else:
            assert "trace" in made.name
            assert answer[1] == expected[1]


def test_zero_bytes_in_a_log(write):
    """What a log loses to one who empties it while it is written, and what a crash leaves."""
    log = BY_NAME["tf1_control_flow.log"].data
    expected = content(write(log))
    assert content(write(bytes(5000) + log)) == expected
    assert content(write(log + bytes(5000))) == expected
    _, rows, result = content(write(log[:3000] + b"\0" + log[3000:]))
    assert result["malformed_lines"] == 1
    assert len(rows["log_records"]) == len(expected[1]["log_records"]) - 1


# Text in JSON that is no text, and numbers that are none.


@each_row(
    ("value", "reason"),
    [
        (b'"\\ud800"', "an escape is half a character"),
        (b"9" * 5000, "too many digits"),
        (b"[" * 3000 + b"]" * 3000, "nested too deeply"),
        (b"tru", "line 1, column"),
        (b"1e400", "producer"),
        (b"NaN", "producer"),
        (b"2147483648", "producer"),
        (b"[1]", "producer"),
    ],
)
def test_json_that_no_message_can_hold(write, value, reason):
    error = error_of(write(b'{"versions": {"producer": ' + value + b"}}"))
    assert reason in error
    assert error.endswith("(GraphDef in JSON)")
