"""A job: which profiles belong together, who waits for whom, and what its ranks' memory holds.

It works on contributions (`contribution_of`), which are made where a profile is read, never on
profiles.
"""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
