"""Writing HTML so that no text of a profile is ever taken for markup.

`tag` escapes whatever is not `Markup` already, and only this module makes markup of text. Names
come from files that anyone may have written: what cannot be printed (control characters, marks
that turn the direction of the text, halves of surrogate pairs) is spelled as an escape.
"""

from __future__ import annotations

from collections.abc import Iterable

_VOID = frozenset({"br", "wbr", "col", "hr", "link", "meta"})
_SPECIAL = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "`": "&#96;"}
)
_LONGEST = 400


class Markup(str):
    """Text that is HTML already; made by this module only."""

    __slots__ = ()


Child = str | int | None
"""What an element may hold: markup, text that is to be escaped, a number, or nothing."""


def clip(value: str, longest: int = _LONGEST) -> str:
    """``value`` with its middle left out where it has more than ``longest`` characters."""
    if len(value) <= longest:
        return value
    head = (longest - 1) * 2 // 3
    return f"{value[:head]}…{value[head + 1 - longest :]}"


def text(value: Child) -> Markup:
    """``value`` as HTML: escaped, unless it is markup; nothing for None."""
    if value is None:
        return Markup()
    if isinstance(value, Markup):
        return value
    shown = str(value)
    if not shown.isprintable():
        shown = "".join(
            one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode()
            for one in shown
        )
    return Markup(shown.translate(_SPECIAL))


def code(value: str, longest: int = _LONGEST) -> Markup:
    """A name as code, clipped, that may be broken after its slashes."""
    return tag("code", Markup(text(clip(value, longest)).replace("/", "/<wbr>")))


def join(children: Iterable[Child], between: str = "") -> Markup:
    """The children one after another, ``between`` (which is markup) in between."""
    return Markup(between.join(text(child) for child in children))


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """An element. ``class_`` is written class, ``aria_label`` aria-label; None and False are left
    out, True stands without a value.
    """
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{join(children)}</{name}>")
