"""The metadata of an instruction as OpMetadata: ``{op_name="jit(f)/add" source_line=3}``."""

from __future__ import annotations

import re

from peakline.formats.hlo_text.packing import Value, message, pack, utf8
from peakline.formats.hlo_text.scan import unquoted
from peakline.wire.tables import varint

_PAIR = re.compile(
    rb'\s*+([a-z_]++)=(?:"((?:[^"\\]++|\\.)*+)"|([^\s{}"]++)|\{([^{}"]*+)\})', re.DOTALL
)
_TEXTS = {b"op_type": 1, b"op_name": 2, b"source_file": 3, b"deduplicated_name": 12,
          b"scheduling_name": 16}  # fmt: skip
_NUMBERS = {
    b"source_line": 4, b"source_end_line": 17, b"source_column": 18, b"source_end_column": 19,
    b"stack_frame_id": 15, b"size_of_generated_code_in_bytes": 8,
    b"size_of_memory_working_set_in_bytes": 9,
}  # fmt: skip
_LISTS = {b"profile_type": "profile_type"}
_SKIPPED = frozenset((b"preserve_layout", b"profile_info", b"metadata_payload"))
_MOST_NUMBER = re.compile(rb"-?\d{1,19}")


def metadata_field(value: bytes) -> tuple[bytes, int]:
    """The field of HloInstructionProto, and how many parts of it are unknown.

    Raises ValueError where ``value`` is no metadata.
    """
    inside: list[bytes] = []
    unknown, at, end = 0, 1, len(value) - 1
    if value[:1] != b"{":
        raise ValueError(value[:40])
    while (found := _PAIR.match(value, at, end)) is not None:
        name, text, word, braced = found.groups()
        at = found.end()
        if text is not None and name in _TEXTS:
            if text:
                plain = unquoted(b'"%b"' % text) if b"\\" in text else text
                inside.append(message(_TEXTS[name], utf8(plain)))
        elif word is not None and name in _NUMBERS:
            if not _MOST_NUMBER.fullmatch(word):
                raise ValueError(word[:40])
            if int(word):
                inside.append(varint(_NUMBERS[name] << 3) + varint(int(word)))
        elif braced is not None and name in _LISTS:
            kinds: list[Value] = [one.strip().decode() for one in braced.split(b",") if one.strip()]
            inside.append(pack("xla.OpMetadata", {_LISTS[name]: kinds}))
        elif name not in _SKIPPED:
            unknown += 1
    if value[at:end].strip():
        raise ValueError(value[:40])
    return message(_FIELD, b"".join(inside)), unknown


_FIELD = 7
"""``metadata`` of HloInstructionProto."""
