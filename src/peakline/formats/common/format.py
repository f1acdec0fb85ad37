"""What a format says of itself: how a file of it is recognised, who reads it, how it is documented.

Every module and folder of `peakline.formats`, but for this one, is the format of its name and has
a ``FORMAT``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

from peakline.formats.common.files import Opener, SourceFile
from peakline.tables.reader import Reader


@dataclass(frozen=True)
class Glance:
    """What a short look at the bytes of a local file says of it, without reading it.

    Each takes the path, and an opener for a caller who may not open every file (or None).
    ``tables`` are all that a file of the format can have, `missing_tables` those of which this one
    surely has no row; `names_in` gives the names that may stand in the metadata, of those that it
    is given; `may_have_gpus` is false where there surely is no plane of a GPU.
    """

    tables: frozenset[str]
    missing_tables: Callable[[str, Opener | None], frozenset[str]]
    names_in: Callable[[str, Iterable[str], Opener | None], frozenset[str]]
    may_have_gpus: Callable[[str, Opener | None], bool]


@dataclass(frozen=True)
class Format:
    """One format.

    ``name`` is ``profile.format``. ``reader`` names what reads it, ``module:Class``, called with
    the `SourceFile` and the format's name. ``rank`` orders the formats: of two that explain a file
    equally well the lower one is taken.

    A format that is one protobuf message names it in ``message``, and in ``fields`` the fields of
    it with which a file in text format or JSON begins. Other binary formats are recognised by
    ``begins``, which takes the first bytes; with ``is_text`` a text file is tried, too. Formats of
    JSON are recognised by ``json``: it takes the text and the outermost keys, none for an array.

    With ``is_directory`` it is a directory, known by the names of its files; its ``reader`` is
    called with the path.

    ``suffix`` is how a binary file of it is called in a session, after its host; ``glance`` names
    the `Glance` at files that are so called, ``module:NAME``; empty where only reading helps.

    ``what``, ``written_by`` and ``fills`` (tables, and when) are its row in docs/formats.md.
    """

    name: str
    what: str
    written_by: str
    fills: str
    reader: str
    rank: int
    message: str = ""
    fields: tuple[str, ...] = ()
    suffix: str = ".profile"
    glance: str = ""
    begins: Callable[[bytes], bool] | None = None
    is_text: bool = False
    json: Callable[[str, Mapping[str, None]], bool] | None = None
    is_directory: bool = False

    def reader_class(self) -> Callable[[SourceFile, str], Reader]:
        """What ``reader`` names."""
        return cast("Callable[[SourceFile, str], Reader]", _named(self.reader))

    def glance_at(self) -> Glance:
        """What ``glance`` names."""
        return cast("Glance", _named(self.glance))


def _named(name: str) -> object:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


@cache
def formats() -> Mapping[str, Format]:
    """All formats by name, in the order of their ranks."""
    entries = (entry.name.removesuffix(".py") for entry in Path(__file__).parents[1].iterdir())
    names = (name for name in entries if name.isidentifier() and not name.startswith("_"))
    room = __package__.rpartition(".")[0]
    result = [import_module(f"{room}.{name}").FORMAT for name in names if name != "common"]
    return {one.name: one for one in sorted(result, key=lambda one: one.rank)}


def format_by_name(path: str) -> Format | None:
    """The format that a file of such a name has, compressed or not, of those that can be glanced
    at; None where the name says nothing.
    """
    plain = path.removesuffix(".gz")
    known = (one for one in formats().values() if one.glance and plain.endswith(one.suffix))
    return next(known, None)


@cache
def message_names() -> Mapping[str, str]:
    """The message of every format that is one protobuf message."""
    return {name: one.message for name, one in formats().items() if one.message}
