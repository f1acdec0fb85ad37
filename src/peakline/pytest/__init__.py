"""The pytest plugin: marks that hold a test's device memory to limits, and a fixture that reads it.

pytest loads `peakline.pytest.plugin` by itself where Peakline is installed. docs/pytest.md says
how it is used and what is measured.
"""

from peakline.lazy import attached

__all__, __getattr__, __dir__ = attached(__name__, __file__)
