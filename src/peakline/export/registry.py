"""Targets by name: what ``peakline export`` writes for other tools.

A target is one module of this package with an `Exporter` named ``EXPORTER``. Modules are
imported when their target is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, Protocol

from peakline.errors import NotFoundError, UsageError
from peakline.suggest import there_is

if TYPE_CHECKING:
    from peakline.export.ranks import JobTimelines
    from peakline.tables import Profile

_TARGETS = ("chrome-trace", "parquet", "perfetto", "pprof", "run-metadata", "speedscope")


@dataclass(frozen=True)
class Options:
    """What a caller may choose: one allocator (None: all), and whether events keep their args."""

    allocator: str | None = None
    args: bool = True


class Sink(Protocol):
    """Where the files of a target go."""

    def __call__(self, write: Callable[[BinaryIO], object], name: str = "") -> None:
        """Let ``write`` fill the file ``name``; a target of one file gives it no name."""


@dataclass(frozen=True)
class Exporter:
    """A format that other tools read."""

    name: str
    """What ``--to`` calls it."""
    doc: str
    """One line for a person."""
    suffix: str
    """How the name of its file usually ends; empty for a folder of several files."""
    is_text: bool
    """Whether that file is text, which a person can read."""
    needs: tuple[tuple[str, ...], ...]
    """The tables it is made from: all tables of one of the entries must have rows."""
    over_time: bool
    """Whether it needs times: records that were made of one moment's buffers do not count."""
    write: Callable[[Profile, Sink, Options], None]
    """Writes a profile; raises NotFoundError where it has nothing that the format holds."""
    write_ranks: Callable[[JobTimelines, Sink, Options], None] | None = None
    """Writes several ranks of a job, on one clock; None where the format holds one profile."""


def target_names() -> list[str]:
    """The names of all targets, sorted."""
    return sorted(_TARGETS)


def find_exporter(name: str) -> Exporter:
    """The target called ``name``; raises UsageError that names the known ones."""
    if name not in _TARGETS:
        raise UsageError(f"no target {name!r:.80}{there_is(name, target_names())}")
    result: Exporter = import_module(f"peakline.export.{name.replace('-', '_')}").EXPORTER
    return result


def can_export(profile: Profile, exporter: Exporter) -> bool:
    """Whether ``profile`` has the tables that the target is made from; reads little for it."""

    def fills(table: str) -> bool:
        moment = exporter.over_time and profile.is_derived(table)
        return profile.has_rows(table) and not moment

    return any(all(map(fills, tables)) for tables in exporter.needs)


def export(profile: Profile, name: str, sink: Sink, options: Options | None = None) -> None:
    """Write ``profile`` as the target ``name``.

    Raises UsageError for an unknown target, NotFoundError where the profile has nothing that it
    holds or no such allocator, InputError when the profile cannot be read.
    """
    exporter = find_exporter(name)
    if not can_export(profile, exporter):
        wanted = ", or ".join(" and ".join(tables) for tables in exporter.needs)
        raise NotFoundError(
            f"{profile.path}: nothing to write as {name}, which is made from rows of {wanted}"
        )
    exporter.write(profile, sink, options or Options())
