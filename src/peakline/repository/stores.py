"""Which store a place lies in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from peakline.places import is_url
from peakline.repository.local import LocalStore
from peakline.repository.store import Store

if TYPE_CHECKING:
    from peakline.repository.confined import Confinement


def store_for(
    path: str,
    storage_options: Mapping[str, object] | None = None,
    confinement: Confinement | None = None,
) -> Store:
    """The store that ``path`` lies in; ``storage_options`` are for fsspec, and locally nothing
    outside of ``confinement`` is touched.
    """
    if is_url(path):
        from peakline.repository.remote import RemoteStore

        return RemoteStore(storage_options or {})
    return LocalStore(confinement)
