"""The timeline: any stretch of a trace at any resolution, search, details and counters."""

from peakline.timing.timeline.index import Timeline, build_timeline, timeline_of
from peakline.timing.timeline.tiles import Tile, draw_tile, tracks_of

__all__ = ["Tile", "Timeline", "build_timeline", "draw_tile", "timeline_of", "tracks_of"]
