"""The file of one host."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from peakline.errors import InputError, NotFoundError
from peakline.repository.store import Missing, Unreadable, store_for

__all__ = ["HostFile"]


@dataclass(frozen=True)
class HostFile:
    """The profile of one host: ``host`` is its name as the file spells it.

    ``path`` is a URL where the file is remote; ``storage_options`` are what fsspec needs to open
    it.
    """

    host: str
    path: str
    storage_options: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    _listed: Hashable | None = field(default=None, compare=False, repr=False)

    def stamp(self) -> Hashable:
        """What identifies the content: path, size, time of change and inode, or the object's tag.

        A local file is asked each time; a remote one has what the listing said that found it.
        Raises NotFoundError when the file is gone, InputError when it cannot be read.
        """
        if self._listed is not None:
            return self._listed
        try:
            return store_for(self.path, self.storage_options).stamp(self.path)
        except Missing:
            raise NotFoundError(f"the file of host {self.host!r} is gone") from None
        except Unreadable as error:
            raise InputError(f"the file of host {self.host!r} cannot be read: {error}") from error
