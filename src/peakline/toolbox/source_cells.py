"""How XProf's tables show the line that an op was made for (``convert/source_info_utils.h``)."""

from __future__ import annotations

from peakline.timing.ops.metrics import Source

_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;"))


def source_cell(source: Source | None) -> str:
    """A piece of HTML: the line, with the calls that led there as its title; empty without one."""
    if source is None or not source.file or source.line == -1:
        return ""
    stack, file = _escaped(source.stack), _escaped(source.file)
    return f"<div class='source-info-cell' title='{stack}'>{file}:{source.line}</div>"


def _escaped(text: str) -> str:
    for sign, name in _ESCAPES:
        text = text.replace(sign, name)
    return text
