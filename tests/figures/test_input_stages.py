"""The figure of input pipelines."""

from tests.reference.xspace_builder import SpaceBuilder

import peakline
from peakline import figures


def opened(tmp_path, fill):
    """A profile with one thread that ``fill`` gives events."""
    space = SpaceBuilder()
    fill(space.host().line("python"))
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space.space.SerializeToString())
    return peakline.open(path)


def test_stages_with_the_one_that_is_waited_for(tmp_path):
    def fill(line):
        line.event("Iterator::Root", 0, 100_000_000).event("Iterator::Root::<b>", 0, 75_000_000)

    with opened(tmp_path, fill) as profile:
        drawn = figures.input_pipeline(profile)
    assert [list(trace.x) for trace in drawn.data] == [[25.0, 75.0], [0.0, 0.0]]
    assert "75% of the time" in drawn.layout.title.subtitle.text
    shown = drawn.to_plotly_json()
    shown["layout"].pop("meta")  # plain text, which nothing reads as HTML
    assert "<b>" not in str(shown)


def test_no_pipeline_no_figure(tmp_path):
    with opened(tmp_path, lambda line: line.event("work", 0, 5)) as profile:
        assert figures.input_pipeline(profile) is None
