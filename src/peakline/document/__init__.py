"""What answers say, once: facts and tables that every face draws as they are, and their JSON.

Its names are imported on first use.
"""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
