"""What ops cost: the views of TensorFlow's own tfprof over a traced run, and its advice.

Its names are imported on first use.
"""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
