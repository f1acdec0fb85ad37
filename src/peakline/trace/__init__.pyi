from peakline.trace.clocks import align as align
from peakline.trace.clocks import clock_of as clock_of
from peakline.trace.events import HOST as HOST
from peakline.trace.events import trace_of as trace_of
from peakline.trace.frames import frame_of as frame_of
