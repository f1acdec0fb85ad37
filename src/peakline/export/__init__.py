"""A profile in the formats of other tools: one file per target, one registry."""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
