"""What ran, in order of time: events, their nesting and activity, devices, links, clocks, steps.

Its names are imported on first use.
"""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
