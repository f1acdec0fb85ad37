"""What a browser may do with the page: its Content-Security-Policy.

Nothing of another site is loaded, sent, framed or submitted to; scripts are files of this server,
no text becomes one, and no text becomes markup (Trusted Types). Styles are files too, with what
Plotly cannot do without as the only exceptions, each by the hash of what it says.
"""

from __future__ import annotations

import base64
import hashlib
import re

_ATTRIBUTES = ("font-weight:bold",)
"""The style attributes that Plotly sets in our figures: that of ``<b>`` in a text."""

_STYLESHEET = re.compile(r"\.textContent='((?:[^'\\]|\\.)*)',document\.head\.appendChild")
_ESCAPED = re.compile(r"\\(.)")


def content_policy(plotly: str) -> str:
    """The policy of a page that may load the script ``plotly``.

    The script brings the stylesheet of a map library, which it inserts into every page that loads
    it, as a map might be drawn. Where none is found in it, there is none to allow.
    """
    inserted = [_ESCAPED.sub(r"\1", found[1]) for found in _STYLESHEET.finditer(plotly)]
    return "; ".join((
        "default-src 'none'",
        "script-src 'self'",
        " ".join(("style-src 'self'", *map(_hash, inserted))),
        " ".join(("style-src-attr 'unsafe-hashes'", *map(_hash, _ATTRIBUTES))),
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types peakline",
    ))  # fmt: skip


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
