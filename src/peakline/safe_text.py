"""Foreign text made harmless for whatever reads it: the one door to a person, a log, a table.

Names come from files that anyone may have written, and every reader obeys something: a terminal
its control characters, a runner of continuous integration its commands, Markdown its links, a
spreadsheet its formulas. Here is how a text is spelled for each of them, so that it is shown and
never obeyed. Nothing of it is left out: what is broken is spelled as an escape.

The commands of runners, which stand in what a job prints: `::name::` at the begin of a line and
`##[name]` anywhere (GitHub, https://github.com/actions/runner, ActionCommand.cs; Gitea, Forgejo),
`##vso[...]` and `##[...]` (Azure Pipelines), `##teamcity[...]` (TeamCity), `section_start:1:name`
(GitLab), `--- name` (Buildkite), `travis_fold:` (Travis).
"""

from __future__ import annotations

import codecs
import csv
import html
import io
import os
import re
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO, cast

_LONGEST_CODE = 200
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""
_CONTROL = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000e0001\U000e0020-\U000e007f]"
)
"""What moves a cursor, ends a line, turns or hides text, but for a line break and a tab."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 (as OWASP lists)
_NUMBER = re.compile(
    r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]inf", re.ASCII | re.IGNORECASE
)

# What a comparison that knows languages, such as that of .NET, passes over, and the sequences of a
# terminal that color; not the escape character alone, with which our own colors begin.
_IGNORED = (
    "\0-\x08\x0e-\x1a\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff"
)
_SGR = r"\x1b\[[0-9;?]*[A-Za-z]"
_PASSED = rf"(?:[{_IGNORED}]|{_SGR})*"
_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_BREAK_CHARACTERS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_BEGIN = rf"(?:\A|[{_BREAKS}])(?:[^\S{_BREAKS}]|[{_IGNORED}]|{_SGR})*"
_COMMAND = re.compile(
    rf"#{_PASSED}#(?:[\w{_IGNORED}]|{_SGR})*\["
    rf"|{_BEGIN}(?::{_PASSED}:|(?:---|\+\+\+|~~~|\^\^\^)[^\S{_BREAKS}])"
    r"|section_(?:start|end):\d+:|travis_(?:fold|time):"
)
"""A command as far as the character without which it is none, its last."""
_HIDDEN = (
    rb"(?:[\0-\x08\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xe2\x80[\x8b-\x8f\xaa-\xae]"
    rb"|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xb8[\x80-\x8f])*"
)
_BLANK = (
    rb"(?:[\0-\t\v\f\x0e-\x20\x7f]|\xc2[\x80-\xa0\xad]|\xe2\x80[\x80-\x8f\xa8-\xaf]|\xe3\x80\x80)*"
)
_IN_BYTES = re.compile(
    rb"#%b#(?:\w|%b)*\[[A-Za-z.-]{3,}|(?:\A|[\n\r])%b:%b:[A-Za-z-]{3,}"
    rb"|section_(?:start|end):\d{1,20}:|\x1b(?:_bk;|\]133\d;)"
    % (_HIDDEN, _HIDDEN.removesuffix(b"*"), _BLANK, _HIDDEN)
)
"""A command in what is no text, where three such characters may follow each other by chance."""
_LINE_HEAD = 4096
_TAIL = 128
_ESCAPE_GROWTH = 5

RUNNERS = (
    "CI", "GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION",
    "GITLAB_CI", "BUILDKITE", "TRAVIS", "CIRCLECI", "JENKINS_URL", "APPVEYOR", "DRONE",
    "BITBUCKET_BUILD_NUMBER", "CODEBUILD_BUILD_ID", "WOODPECKER",
)  # fmt: skip
_NO = frozenset({"", "0", "false", "no", "off"})


def one_line(text: str) -> str:
    """``text`` without line breaks or control characters, which are spelled as escapes.

    Names come from files that anyone may have written; a terminal must not obey them.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def own_lines(text: str) -> str:
    """``text`` of several lines, such as a traceback, each as `one_line` and ended."""
    return "".join(f"{one_line(line)}\n" for line in text.rstrip("\n").split("\n"))


def cut_middle(text: str, length: int | None) -> str:
    """``text`` in at most ``length`` characters: its begin and its end say most."""
    text = one_line(text)
    if length is None or len(text) <= length:
        return text
    length = max(length, 3)
    head = (length - 1) // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def valid_text(text: str) -> str:
    """``text`` with U+FFFD for each half of a surrogate pair, which no encoding can write."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def markdown_code(text: str) -> str:
    """``text`` as code within a line of Markdown or a cell of its tables, cut at 200 characters.

    Within code neither a link nor a mention of a person is obeyed. What a code span cannot hold
    there (pipes, backticks) is written in HTML.
    """
    line = one_line(text)
    if len(line) > _LONGEST_CODE:
        line = f"{line[: _LONGEST_CODE - 1]}…"
    if not line.strip() or "`" in line or "|" in line:
        return f"<code>{markdown_text(line)}</code>"
    return f"`{line}`"


def markdown_text(text: str) -> str:
    """``text`` where both HTML and Markdown are read.

    All but letters, digits and blanks are character references, which neither obeys.
    """
    return "".join(
        character if character.isalnum() or character in " /-" else f"&#{ord(character)};"
        for character in text
        if character.isprintable()
    )


def xml_attribute(text: str) -> str:
    """``text`` as the value of an attribute of XML, in quotes."""
    shown = _NOT_XML.sub("\ufffd", valid_text(one_line(text)))
    return f'"{html.escape(shown)}"'


def sarif_text(text: str) -> str:
    """``text`` as the message of a SARIF result, where ``[text](place)`` is a link.

    Escapes as in 3.11.6 of https://docs.oasis-open.org/sarif/sarif/v2.1.0/; a text without a link,
    such as ``f32[8]``, stays as it is, for readers that know none.
    """
    text = valid_text(one_line(text))
    return re.sub(r"[\\\[\]]", r"\\\g<0>", text) if "](" in text else text


def github_message(text: str) -> str:
    """``text`` as the message of a workflow command of GitHub."""
    text = broken(valid_text(one_line(text)))
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_property(text: str) -> str:
    """``text`` as a property of a workflow command of GitHub."""
    return github_message(text).replace(":", "%3A").replace(",", "%2C")


def spreadsheet_text(text: str) -> str:
    """``text`` as a cell of CSV that no spreadsheet takes for a formula: with ``'`` before it
    where it begins as one does (https://owasp.org/www-community/attacks/CSV_Injection) and is no
    number.
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def write_rows(stream: TextIO, rows: Iterable[Iterable[str]]) -> None:
    """Write ``rows`` as lines of CSV. A text that holds a carriage return is quoted, at which
    spreadsheets end a row and `csv` quotes nothing.
    """
    plain, quoted = (
        csv.writer(stream, quoting=quoting, lineterminator="\n")
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    for row in map(list, rows):
        (quoted if any("\r" in cell for cell in row) else plain).writerow(row)


def safe_csv(content: bytes) -> bytes:
    """CSV whose cells are those of ``content``, each as `spreadsheet_text`."""
    csv.field_size_limit(sys.maxsize)  # by default 128 KiB, and names may be longer
    result = io.StringIO(newline="")
    rows = csv.reader(io.StringIO(content.decode("utf-8", "surrogateescape"), newline=""))
    cells = ([spreadsheet_text(cell) for cell in row] for row in rows)
    write_rows(result, cells)
    return result.getvalue().encode("utf-8", "surrogateescape")


def is_ci() -> bool:
    """Whether this process is a job of continuous integration, by its variables."""
    return any(os.environ.get(name, "").lower() not in _NO for name in RUNNERS)


def for_log(text: str) -> str:
    """``text`` that is printed by somebody else, such as a test runner: its commands are broken
    where this process is a job of continuous integration.
    """
    return broken(text) if is_ci() else text


def broken(text: str, before: str = "") -> str:
    r"""``text`` with every command of a runner broken visibly: ``##[`` becomes ``##\u005b``.

    ``before`` is what stands before it in its line. JSON means the same afterwards, as a command
    can only stand in one of its texts, where this is how the character is escaped.
    """
    whole, start = before + text, len(before)
    pieces: list[str] = []
    for match in _COMMAND.finditer(whole):
        last = match.end() - 1
        if last >= len(before):
            pieces += [whole[start:last], f"\\u{ord(whole[last]):04x}"]
            start = last + 1
    return "".join([*pieces, whole[start:]]) if pieces else text


def _line_after(line: str) -> str:
    """What decides about the next text of what stands in its line: all of a begin, else the end."""
    end = line[max(map(line.rfind, _BREAK_CHARACTERS)) + 1 :]
    return end if len(end) <= _LINE_HEAD else f"x{end[-_TAIL:]}"


class Guarded:
    """A stream of text on which commands of runners are broken, also those written in pieces.

    All else is that of ``stream``. May be used from several threads.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._line, self._lock = stream, "", threading.Lock()

    def write(self, text: str) -> int:
        """Write to the stream."""
        with self._lock:
            result = broken(text, self._line)
            self._line = _line_after(self._line + result)
            self._stream.write(result)
        return len(text)

    def writelines(self, lines: Sequence[str]) -> None:
        """Write each of ``lines``."""
        for line in lines:
            self.write(line)

    def write_commands(self, lines: str) -> None:
        """Write ``lines`` that are commands, and meant as such."""
        with self._lock:
            self._stream.write(f"\n{lines}" if self._line else lines)
            self._line = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarded_streams(*, always: bool = False) -> Iterator[None]:
    """Break commands of runners on both standard streams while the block runs, in a job of
    continuous integration or ``always``.
    """
    if not (always or is_ci()):
        yield
        return
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", Guarded(one)) for one in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def write_commands(lines: str, stream: TextIO) -> None:
    """Write whole lines that a runner shall obey, whether or not ``stream`` is guarded."""
    getattr(stream, "write_commands", stream.write)(lines)


class CommandError(ValueError):
    """A command to the runner of a job stands where it cannot be broken."""


class Document(io.BufferedIOBase):
    """Bytes of an answer on their way to a terminal or a log. Of one that ``is_text`` control
    characters and commands are escapes, and counted in ``changes``; any other that holds a command
    is refused with CommandError, as it cannot be changed.
    """

    def __init__(self, stream: BinaryIO, *, is_text: bool) -> None:
        super().__init__()
        self._stream, self._is_text = stream, is_text
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._line, self._tail, self.changes = "", b"", 0

    def write(self, data: Any) -> int:
        """Write all of ``data``."""
        content = bytes(data)
        if not self._is_text:
            whole = self._tail + content
            if _IN_BYTES.search(whole):
                raise CommandError("a command to what reads the log of a job")
            self._tail = whole[-_TAIL:]
            self._stream.write(content)
            return len(content)
        self._write_text(self._decoder.decode(content))
        return len(content)

    def end(self) -> None:
        """Write what is left of a character that was cut off."""
        self._write_text(self._decoder.decode(b"", final=True))

    def _write_text(self, text: str) -> None:
        text, controls = _CONTROL.subn(_escape, text)
        result = broken(text, self._line)
        self.changes += controls + (len(result) - len(text)) // _ESCAPE_GROWTH
        self._line = _line_after(self._line + result)
        self._stream.write(result.encode("utf-8", "surrogateescape"))

    def writable(self) -> bool:
        """It is."""
        return True

    def flush(self) -> None:
        """Hand on what the stream beneath holds."""
        self._stream.flush()


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


@contextmanager
def document_on(stream: TextIO, *, is_text: bool) -> Iterator[Document | BinaryIO]:
    """The bytes beneath ``stream``: as they are for a file or a program, guarded where a terminal,
    or in a job of continuous integration perhaps its log, shows them.
    """
    is_log = hasattr(stream, "write_commands")
    if not (is_log or stream.isatty()) or _is_file(stream):
        yield stream.buffer
        return
    result = Document(stream.buffer, is_text=is_text)
    yield result
    result.end()


def _is_file(stream: TextIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False
