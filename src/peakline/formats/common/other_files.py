"""Files that are no profile and are met often, and what to do with them.

An archive, a pointer that Git LFS leaves in place of a file, a page of a web site, what XProf
answered about a profile: each is known by its content, so that the error says what to type.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_PACKED = "unpack it first"
_WIDE = "UTF-16 or UTF-32: save it as UTF-8"
_SIGNATURES = {
    # google/riegeli: the signature of a file of records.
    bytes.fromhex("83af70d10d884a3f"): "a chunked saved model, .cpb: save it below 2 GiB as "
    "saved_model.pb",
    b"PK\x03\x04": f"a zip archive: {_PACKED}",
    b"PK\x05\x06": "an empty zip archive",
    b"\x1f\x8b": f"a gzip file in another: {_PACKED}",
    b"\x28\xb5\x2f\xfd": f"compressed by zstd: {_PACKED}",
    b"\xfd7zXZ": f"compressed by xz: {_PACKED}",
    b"BZh": f"compressed by bzip2: {_PACKED}",
    b"\x04\x22\x4d\x18": f"compressed by lz4: {_PACKED}",
    b"7z\xbc\xaf\x27\x1c": f"a 7z archive: {_PACKED}",
    b"Rar!\x1a\x07": f"a rar archive: {_PACKED}",
    # Byte order marks.
    b"\xff\xfe": f"text in {_WIDE}",
    b"\xfe\xff": f"text in {_WIDE}",
}
"""What a file begins with."""

_LFS = re.compile(rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v\d")
_ANNEX = re.compile(rb"(?:\.\./)*\.?/?(?:\.git/)?annex/objects/[^\n]{1,400}\s*\Z")
_DVC = re.compile(rb"(?:[\w-]+:[^\n]*\n)*outs:\r?\n- +(?:md5|etag|hash|size|path):")
_PAGE = re.compile(rb"\s*+<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_TORCH_MEMORY = re.compile(rb"\[\[(?:[0-9]{15,20}, [0-9]{15,20}|-?[0-9]{1,20}, [0-4], )")


def note_of(head: bytes) -> str:
    """What the file that begins with ``head`` is and what to do, where it is one of these; else
    empty.

    >>> note_of(b"version https://git-lfs.github.com/spec/v1")
    'a Git LFS pointer, not the file itself: git lfs pull fetches it'
    """
    for signature, note in _SIGNATURES.items():
        if head.startswith(signature):
            return note
    # An editor on Windows may have put a mark before what it saved.
    text = head.removeprefix(b"\xef\xbb\xbf")
    return next((note for is_one, note in _CONTENTS if is_one(text)), "")


_BLOCK = 512
_CHECKSUM = slice(148, 156)


def _is_tar(head: bytes) -> bool:
    """Whether it begins with the header of a member (POSIX ustar; older ones by their checksum)."""
    if len(head) < _BLOCK or not head[0]:
        return False
    if head[257:262] == b"ustar":
        return True
    stated = head[_CHECKSUM].strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,7}", stated):
        return False
    # The checksum counts its own bytes as blanks.
    rest = sum(head[:_BLOCK]) - sum(head[_CHECKSUM])
    return int(stated, 8) == rest + 8 * ord(" ")


_TABLES = re.compile(rb'\s*+\[?+\s*+\{\s*+"(?:cols|rows|p)"\s*+:\s*+[\[{]')
"""How tables of Google Charts begin, in which overview_page and others answer."""
_ANSWER = re.compile(
    rb'\s*+\{\s*+"(?:byCategory|byProgram|byCategoryExcludeIdle|byProgramExcludeIdle'
    rb'|memoryProfilePerAllocator|podStatsSequence|hloInfoMap)"\s*+:'
)
"""How other answers begin."""
_PART = re.compile(rb"type\.googleapis\.com/tensorflow\.profiler\.\w")
"""How the messages of overview_page and the input pipeline name the parts of others."""


def _is_answer(head: bytes) -> bool:
    """Whether it is what a tool of XProf answers as JSON."""
    if _TABLES.match(head):
        return b'"cols"' in head and b'"rows"' in head
    return _ANSWER.match(head) is not None


def note_of_message(head: bytes) -> str:
    """What a protobuf message is that is no profile."""
    if _PART.search(head):
        return _ANSWERED
    return "another protobuf message; the profile of a session is its .xplane.pb"


_TIMELINE = (
    "what torch.profiler's export_memory_timeline writes, sums by category alone: read what "
    "export_chrome_trace writes of the same recording"
)
_ANSWERED = (
    "what a tool of XProf answered about a profile: read the profile itself, the .xplane.pb of the "
    "same run"
)
_CONTENTS: tuple[tuple[Callable[[bytes], object], str], ...] = (
    (_TORCH_MEMORY.match, _TIMELINE),
    (_is_tar, f"a tar archive: {_PACKED}"),
    (_LFS.match, "a Git LFS pointer, not the file itself: git lfs pull fetches it"),
    (_ANNEX.match, "a git-annex pointer, not the file itself: git annex get fetches it"),
    (_DVC.match, "a DVC pointer, not the file itself: dvc pull fetches it"),
    (_PAGE.match, "a page of a web site, not the file itself: download it in raw form"),
    (_is_answer, _ANSWERED),
)  # fmt: skip
