"""Names of the served log directories: short, and telling nobody where the server keeps them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_SESSIONS = ("plugins", "profile")
_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://")
_NAMELESS = "logs"


def root_names(roots: Iterable[str]) -> dict[str, str]:
    """The roots by name, in their order: the last part of a path, and as many parts before it as
    tell it from the others. The same place twice has one name.
    """
    parts = {root: _parts(root) for root in roots}
    named: dict[str, str] = {}
    for root, own in parts.items():
        others = [other for other in parts.values() if other != own]
        many = 1
        while many < len(own) and any(other[-many:] == own[-many:] for other in others):
            many += 1
        named.setdefault("/".join(own[-many:]) or _NAMELESS, root)
    return named


def _parts(root: str) -> tuple[str, ...]:
    """The parts of a local path or a URL, without those below which every log directory has its
    sessions.
    """
    scheme = _SCHEME.match(root)
    place = root[scheme.end() :] if scheme else os.path.abspath(root)  # noqa: PTH100 (no Path: a URL's rules differ)
    parts = tuple(part for part in place.split("/") if part not in ("", "."))
    return parts[:-2] if parts[-2:] == _SESSIONS and len(parts) > len(_SESSIONS) else parts
