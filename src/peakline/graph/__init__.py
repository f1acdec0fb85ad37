"""Graphs: their rules, a summary, neighbourhoods, and the critical path of a step.

Its names are imported on first use.
"""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
