"""Numbers and foreign text made fit for a person's screen."""

from __future__ import annotations

__all__ = ["bytes_text", "one_line", "time_text"]


def bytes_text(size: int) -> str:
    """A size with a binary unit and one decimal: ``73.0 MiB``; bytes below 1 KiB."""
    if abs(size) < 1024:
        return f"{size} B"
    value, unit = size / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB", "PiB", "EiB"):
        if round(abs(value), 1) < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}"


def time_text(picoseconds: int) -> str:
    """A time in milliseconds, from one second on in seconds: ``32.773 ms``, ``1.204 s``."""
    if abs(picoseconds) < 10**12:
        return f"{picoseconds / 10**9:.3f} ms"
    return f"{picoseconds / 10**12:.3f} s"


def one_line(text: str) -> str:
    """``text`` without line breaks or control characters, which are spelled as escapes.

    Names come from files that anyone may have written; a terminal must not obey them.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
