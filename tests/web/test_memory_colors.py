"""The colors of the memory view's buffers, where no op tells them apart."""

from itertools import pairwise

from tests.web.looking import api, open_view, tells
from tests.web.memories import drawn, view

_COLORS = """async (answer) => {
  const { bufferColors, neighboursOf } = await import("./assets/js/views/memory/buffer-colors.js");
  const colors = (one, wide) => bufferColors(one.record, neighboursOf(one, wide));
  const all = answer.buffers, keep = (column) => column.filter((_, place) => place % 2 === 0);
  return { whole: colors(all, answer.width), part: colors({ record: keep(all.record),
    first: keep(all.first), last: keep(all.last) }, answer.width) };
}"""


def test_without_ops_each_buffer_has_a_color_that_its_neighbours_have_not(page, server):
    open_view(page, server, view("torch_snapshot"), draw="buffers")
    drawn(page)
    tells(page.locator(".layer-legend"), "colored by buffer, since no op is recorded")
    answer = api(server, "sessions/torch_snapshot/tools/memory_polygons", width=200)
    columns = answer["buffers"]
    found = page.evaluate(_COLORS, answer)
    colors = found["whole"]
    for pixel in range(200):
        lives = [
            one for one in range(len(colors))
            if columns["first"][one] <= pixel < columns["last"][one]
        ]  # fmt: skip
        assert all(colors[one] != colors[other] for one, other in pairwise(lives))
    assert len(set(colors)) == 12
    # Most have the same color whatever is in view.
    same = [one == other for one, other in zip(colors[::2], found["part"], strict=True)]
    assert sum(same) > len(same) / 2
    open_view(page, server, view("leak_list"), draw="buffers")
    drawn(page)
    assert "colored by buffer" not in page.locator(".layer-legend").inner_text()
