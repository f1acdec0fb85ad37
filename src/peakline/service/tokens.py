"""The tokens that callers must show."""

from __future__ import annotations

import hmac
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from peakline.errors import UsageError

_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
_SCHEME = "bearer"
_SHORT = 16
_LARGEST_FILE = 1 << 20


def is_token(text: str) -> bool:
    """Whether ``text`` can be a token: visible ASCII without spaces, as a header needs it."""
    return _TOKEN.fullmatch(text) is not None


def read_tokens(path: str) -> tuple[str, ...]:
    """The tokens of a file: one a line, empty lines and those that begin with ``#`` left out.

    Raises UsageError when the file cannot be read, holds no token or something that is none
    (a token is visible ASCII without spaces), or may be written by every user of the machine.
    """
    place = Path(path)
    try:
        mode = place.stat().st_mode
        with place.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"--token-file {path}: cannot be read: {reason}") from None
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"--token-file {path}: is larger than 1 MiB")
    if stat.S_ISREG(mode) and mode & stat.S_IWOTH:
        raise UsageError(f"--token-file {path}: every user may write it; chmod 600 it")
    tokens = []
    for number, line in enumerate(content.decode("latin-1").splitlines(), 1):
        token = line.strip()
        if not token or token.startswith("#"):
            continue
        if not is_token(token):
            raise UsageError(
                f"--token-file {path}: line {number} is no token: visible ASCII without spaces"
            )
        tokens.append(token)
    if not tokens:
        raise UsageError(f"--token-file {path}: holds no token")
    return tuple(dict.fromkeys(tokens))


def weaknesses(path: str, tokens: Iterable[str]) -> list[str]:
    """What makes these tokens easier to come by than they should be; one line for each."""
    result = []
    mode = Path(path).stat().st_mode
    # A file that a container's orchestrator mounts is often readable by all: reported, not refused.
    if stat.S_ISREG(mode) and mode & stat.S_IROTH:
        result.append(f"{path}: every user of this machine can read the tokens; chmod 600 it")
    if any(len(token) < _SHORT for token in tokens):
        result.append(f"{path}: a token of fewer than {_SHORT} characters can be guessed")
    return result


def token_matches(authorization: str | None, tokens: Iterable[str]) -> bool:
    """Whether ``Bearer TOKEN`` shows one of ``tokens``.

    The time that this takes says nothing about how much of a token was right, nor about which.
    """
    given = shown_token(authorization).encode("utf-8", "surrogateescape")
    matched = False
    for token in tokens:
        matched |= hmac.compare_digest(given, token.encode("ascii"))
    return matched


def shown_token(authorization: str | None) -> str:
    """What ``Bearer TOKEN`` shows; empty where it shows nothing."""
    scheme, _, shown = (authorization or "").strip().partition(" ")
    return shown.strip() if scheme.lower() == _SCHEME else ""
