"""The rules of XProf's step and op statistics.

Its names are imported on first use: most tools that XProf has are answered without them.
"""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
