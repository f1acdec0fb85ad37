"""Addresses of the page: what it shows is in the fragment of its URL (``js/core/address.js``)."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def session_address(name: str, view: str, **state: str) -> str:
    """The fragment of a session's view: ``#/session/NAME/VIEW?host=H``; empty state is left out."""
    query = urlencode({key: value for key, value in state.items() if value}, quote_via=quote)
    return f"#/session/{quote(name, safe='')}/{view}{'?' if query else ''}{query}"
