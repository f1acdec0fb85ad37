from peakline.trace.clocks import align as align
from peakline.trace.clocks import clock_of as clock_of
