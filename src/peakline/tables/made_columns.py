"""Columns of a table that no format fills: made from its others when a question names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.tables.columns import Columns

if TYPE_CHECKING:
    from peakline.tables.profile import Profile


@dataclass(frozen=True)
class ColumnDerivation:
    """Columns made from others of their table.

    ``made_of`` gives for each of them the columns of the table that it needs, so that one read
    brings all; ``make`` returns those of the given names, one value per row of the table and in its
    order. It may read the table of the profile, not the columns it makes.
    """

    made_of: Mapping[str, frozenset[str]]
    make: Callable[[Profile, AbstractSet[str]], Columns]

    def stored(self, wanted: AbstractSet[str]) -> frozenset[str]:
        """The columns that the format has to give for ``wanted``."""
        made = wanted & self.made_of.keys()
        return frozenset(wanted - made).union(*(self.made_of[name] for name in made))


def joined(columns: Columns, more: Columns) -> Columns:
    """All columns of both; the rows are the same."""
    return Columns({**columns.data, **more.data}, {**columns.valid, **more.valid})


def without(columns: Columns, names: AbstractSet[str]) -> Columns:
    """``columns`` but for ``names``."""
    data = {name: column for name, column in columns.items() if name not in names}
    return Columns(data, {name: mask for name, mask in columns.valid.items() if name in data})
