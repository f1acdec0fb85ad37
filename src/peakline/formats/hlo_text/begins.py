"""How XLA's text dumps begin, behind blank lines and comments."""

from __future__ import annotations

import re

_BEFORE = rb"(?:\xef\xbb\xbf)?+(?:\s++|//[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_MODULE = re.compile(_BEFORE + rb"HloModule\s++[^\s,]")
_ASSIGNMENT = re.compile(
    _BEFORE + rb"(?:BufferAssignment:\s|Total bytes used: \d|Memory Space: [^\n]*\(color=-?\d)"
)


def is_module(head: bytes) -> bool:
    """Whether ``head`` begins as HLO text (``HloModule::ToString`` in openxla/xla)."""
    return _MODULE.match(head) is not None


def is_assignment(head: bytes) -> bool:
    """Whether ``head`` begins as a buffer assignment or a memory usage report, in any form of
    ``xla/service/buffer_assignment.cc`` in openxla/xla.
    """
    return _ASSIGNMENT.match(head) is not None
