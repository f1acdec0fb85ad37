"""The names of an instruction's operands, in all styles: ``%a``, ``a``, ``f32[2]{0} %a``."""

from __future__ import annotations

import re

from peakline.formats.hlo_text.scan import COMMENT, items, unquoted

_MARKED = re.compile(rb'%([^\s=(){},"]++)')


def operand_names(text: bytes) -> list[bytes]:
    """What the text between the parentheses names, in its order."""
    if not text or text.isspace():
        return []
    if b"/*" in text:
        text = COMMENT.sub(b"", text)
    if b"%" in text and b'"' not in text:
        # A shape has no such mark.
        return _MARKED.findall(text)
    names = [(one.split() or [b""])[-1] for one in items(text)]
    return [unquoted(name.removeprefix(b"%")) for name in names]
