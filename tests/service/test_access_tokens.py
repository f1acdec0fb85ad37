"""The tokens: what a file of them may hold, and what a caller must show."""

import pytest
from tests.each_row import each_row

from peakline.errors import UsageError
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
