"""Where a step's time goes: ops, kernels, input, breakdown, critical path, timeline.

Its names are imported on first use.
"""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
