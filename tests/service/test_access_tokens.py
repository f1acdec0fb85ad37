"""Who may read and write what: tokens and captures."""

from ipaddress import IPv4Address

import pytest
from tests.each_row import each_row

from peakline.errors import ForbiddenError, UsageError
from peakline.service.access import Access
from peakline.service.settings import Settings

_GIVEN = "given-to-the-server"


@pytest.fixture
def access(tmp_path):
    def make(content, mode=0o600):
        path = tmp_path / "tokens"
        path.write_bytes(content)
        path.chmod(mode)
        return Access(Settings(roots=(str(tmp_path),), token_file=str(path)))

    return make


@each_row("shown", ["Bearer first", "bearer first", "BEARER  first ", "Bearer 2nd"])
def test_any_token_of_the_file_opens(access, shown):
    assert access(b"# for people\nfirst\n\n  2nd  \r\n").token_matches(shown)


@each_row(
    "shown",
    [
        None, "", "Bearer", "Bearer ", "first", "Basic first", "Bearer firs", "Bearer firstt",
        "Bearer FIRST", "Bearer first 2nd", "Bearer first,Bearer 2nd", "Bearer # for people",
        "Bearer \u0130", "Bearer f\udcffrst", "Bearer\tfirst", "Bearer first\x00",
    ],
)  # fmt: skip
def test_nothing_else_does(access, shown):
    assert not access(b"# for people\nfirst\n2nd\n").token_matches(shown)


def test_without_tokens_everybody_may_ask(tmp_path):
    open_to_all = Access(Settings(roots=(str(tmp_path),)))
    assert open_to_all.token_matches(None)
    assert not open_to_all.guarded


def test_the_token_of_the_settings_counts_beside_those_of_the_file(tmp_path):
    (tmp_path / "t").write_text("filed", encoding="utf-8")
    access = Access(Settings(roots=(str(tmp_path),), token=_GIVEN, token_file=str(tmp_path / "t")))
    assert access.guarded
    assert access.token_matches(f"Bearer {_GIVEN}")
    assert access.token_matches("Bearer filed")
    assert not access.token_matches(None)


def test_the_settings_do_not_show_their_token(tmp_path):
    assert _GIVEN not in repr(Settings(roots=(str(tmp_path),), token=_GIVEN))


@each_row("token", ["", "two words", "t\u00f6ken", "line\n"])
def test_a_token_that_no_header_could_hold_is_refused(tmp_path, token):
    with pytest.raises(UsageError, match="visible ASCII"):
        Access(Settings(roots=(str(tmp_path),), token=token))


@each_row(
    ("content", "mode", "reason"),
    [
        (b"", 0o600, "holds no token"),
        (b"\n# nothing\n \n", 0o600, "holds no token"),
        (b"two words\n", 0o600, "line 1 is no token"),
        (b"good\nb\xffd\n", 0o600, "line 2 is no token"),
        (b"x" * 5000, 0o600, "line 1 is no token"),
        (b"x\n" * (1 << 19) + b"x\n", 0o600, "larger than 1 MiB"),
        (b"good\n", 0o602, "every user may write it"),
    ],
)
def test_a_file_that_holds_no_tokens_is_refused_in_a_line(access, content, mode, reason):
    with pytest.raises(UsageError, match=reason) as refused:
        access(content, mode)
    assert "good" not in str(refused.value)
    assert "two" not in str(refused.value)


@each_row("name", ["missing", ".", "a\x00b"])
def test_a_file_that_cannot_be_read_is_refused_in_a_line(tmp_path, name):
    with pytest.raises(UsageError, match="cannot be read"):
        Access(Settings(roots=(str(tmp_path),), token_file=str(tmp_path / name)))


def test_what_makes_tokens_weak_is_told(access):
    assert access(b"long-enough-to-be-hard\n").cautions() == []
    readable, short = access(b"short\n", 0o644).cautions()
    assert "can read the tokens" in readable
    assert "guessed" in short


def test_tokens_are_changed_without_a_restart(access, tmp_path):
    rules = access(b"old\n")
    (tmp_path / "tokens").write_bytes(b"old\nnew\n")
    assert not rules.token_matches("Bearer new")
    rules.reload_tokens()
    assert rules.token_matches("Bearer new")
    (tmp_path / "tokens").write_bytes(b"")
    with pytest.raises(UsageError):
        rules.reload_tokens()
    assert rules.token_matches("Bearer old")


def _target(host, tmp_path, *allowed, workers=None, port=8466):
    settings = Settings(
        roots=(str(tmp_path),), allow_capture=allowed, workers=workers or {}, profiler_port=port
    )
    target = Access(settings).capture_target(host)
    return target.host, target.address


@each_row(
    ("asked", "host", "address"),
    [
        ("localhost", "localhost", "localhost:8466"),
        ("LocalHost.", "localhost", "localhost:8466"),
        ("localhost:9012", "localhost", "localhost:8466"),
        ("grpc://localhost:9012", "localhost", "localhost:8466"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:8466"),
        ("127.9.8.7:1", "127.9.8.7", "127.9.8.7:8466"),
        ("::1", "::1", "[::1]:8466"),
        ("[::1]", "::1", "[::1]:8466"),
        ("[0:0:0:0:0:0:0:1]:77", "::1", "[::1]:8466"),
        ("::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1:8466"),
        ("[::ffff:7f00:1]:5", "127.0.0.1", "127.0.0.1:8466"),
    ],
)
def test_loopback_is_allowed_in_one_spelling_and_the_port_is_the_server_s(
    asked, host, address, tmp_path
):
    assert _target(asked, tmp_path) == (host, address)


@each_row(
    "asked",
    [
        "10.0.0.1", str(IPv4Address(0)), "::", "[::]:8466", "169.254.169.254",
        "[::ffff:169.254.169.254]", "worker-0", "metadata.google.internal", "localhost.example.com",
        "evil.localhost", "localhost.localdomain", "127.0.0.1.nip.io", "::127.0.0.1",
        "64:ff9b::7f00:1",
    ],
)  # fmt: skip
def test_anything_else_is_forbidden(asked, tmp_path):
    with pytest.raises(ForbiddenError, match="not allowed"):
        _target(asked, tmp_path)


@each_row(
    "asked",
    [
        "", ".", ":8466", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.0.0.01",
        "127.0.0.1.", "localhost..", "localhost:", "localhost:x", "localhost:65536", "localhost:-1",
        "localhost:\u0661", "a:b:c", "[::1", "[::1]x", "[::1]:", "[localhost]", "fe80::1%eth0",
        "::1%lo", "user@localhost", "localhost/x", "local host", "localhost\n",
        "localhost\x00.example.com", "localh\u00f6st", "\uff4cocalhost", "\u2460\u2461\u2466.0.0.1",
        "-localhost", "localhost,10.0.0.1", "ipv4:127.0.0.1", "dns:///localhost",
        "unix:/tmp/socket", "grpc://grpc://localhost", "x" * 64,
        "a." * 127 + "a",
        "%6cocalhost",
    ],
)  # fmt: skip
def test_what_is_no_host_is_refused(asked, tmp_path):
    with pytest.raises(UsageError) as refused:
        _target(asked, tmp_path, "*")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@each_row(
    ("pattern", "yes", "no"),
    [
        ("worker-1", ["worker-1", "WORKER-1.:3"], ["worker-11", "worker-1.example.com"]),
        ("tpu-*", ["tpu-0", "tpu-east"], ["tpu-0.evil.com", "xtpu-0", "10.0.0.1"]),
        ("*.example.com", ["a.example.com"], ["a.b.example.com", "example.com", "aexample.com"]),
        ("**.example.com", ["a.example.com", "a.b.example.com"], ["example.com", "a.example.org"]),
        ("w?", ["w1"], ["w", "w12", "w."]),
        ("10.1.2.3", ["10.1.2.3", "::ffff:10.1.2.3"], ["10.1.2.4", "10.1.2.3.nip.io"]),
        ("10.1.0.0/16", ["10.1.200.9"], ["10.2.0.1", "10.1.0.1.nip.io"]),
        ("fd00::/8", ["fd12::9"], ["fe00::1", "10.0.0.1"]),
        ("[fd00::5]", ["[fd00::5]:9"], ["fd00::6"]),
        ("10.1.*.*", ["10.1.7.8"], ["10.1.example.com", "10.2.1.1"]),
        ("*", ["anything", "a.b.c", "10.9.9.9", "fd00::1"], []),
    ],
)
def test_patterns_allow_what_they_say(pattern, yes, no, tmp_path):
    for host in yes:
        assert _target(host, tmp_path, pattern)[1].endswith(":8466"), host
    for host in no:
        with pytest.raises((ForbiddenError, UsageError)):
            _target(host, tmp_path, pattern)


@each_row(
    "pattern",
    ["", "10.0.0.5/8", "10.0.0.0/33", "host:80", "http://x", "a b", "127.1", "(a|b)*", "h\u00f6st"],
)
def test_a_pattern_that_is_none_is_refused_at_the_start(pattern, tmp_path):
    with pytest.raises(UsageError, match="--allow-capture"):
        Access(Settings(roots=(str(tmp_path),), allow_capture=(pattern,)))


def test_a_worker_s_name_stands_for_its_address(tmp_path):
    workers = {"w0": "10.3.3.3:9000", "Trainer": "localhost:9001", "job:1": "localhost:9002"}
    for request, expected in {
        "w0": ("w0", "10.3.3.3:9000"),
        "W0:50051": ("w0", "10.3.3.3:9000"),
        "trainer.": ("Trainer", "localhost:9001"),
        "job:1": ("job:1", "localhost:9002"),
    }.items():
        assert _target(request, tmp_path, workers=workers) == expected
    with pytest.raises(ForbiddenError):
        _target("10.3.3.3", tmp_path, workers=workers)


def test_a_worker_may_stand_for_localhost(tmp_path):
    workers = {"localhost": "localhost:9011"}
    assert _target("localhost:50051", tmp_path, workers=workers) == ("localhost", "localhost:9011")
    assert _target("127.0.0.1", tmp_path, workers=workers) == ("127.0.0.1", "127.0.0.1:8466")
