"""Which store a place lies in."""

from __future__ import annotations

from collections.abc import Mapping

from peakline.repository.store import Store, is_url


def store_for(path: str, storage_options: Mapping[str, object] | None = None) -> Store:
    """The store that ``path`` lies in; ``storage_options`` are for fsspec."""
    if is_url(path):
        from peakline.repository.remote import RemoteStore

        return RemoteStore(storage_options or {})
    from peakline.repository.local import LocalStore

    return LocalStore()
