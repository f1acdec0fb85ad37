"""Every view on a phone, a tablet and a desk: nothing sideways, nothing that cannot be reached."""

import pytest
from tests.web.looking import (
    eventually,
    expect_accessible_in_both_schemes,
    open_view,
    screenshot,
    settle,
)

HEIGHTS = {1440: 900, 800: 1000, 390: 844}
"""The height of the window, by its width."""

NARROWEST = min(HEIGHTS)

PAIR = {"first": "doubled_batch_healthy", "second": "doubled_batch"}
VIEWS = {
    "sessions": ("/", {}),
    "compare": ("/compare", PAIR),
    "summary": ("/session/fragmentation/summary", {}),
    "summary_hosts": ("/session/tf2_multihost/summary", {}),
    "summary_graph": ("/session/hlo_dump/summary", {}),
    "memory_line": ("/session/leak_list/memory", {}),
    "memory_stack": ("/session/leak_list/memory", {"draw": "stack"}),
    "memory_buffers": ("/session/leak_list/memory", {"draw": "buffers"}),
    "memory_report": ("/session/oom_report/memory", {}),
    "timeline": ("/session/tf2_cnn/timeline", {}),
    "timeline_filter": ("/session/tf2_cnn/timeline", {"only": "tf_*"}),
    "steps": ("/session/slow_step/steps", {"step": 6}),
    "ops": ("/session/tf2_cnn/steps", {"part": "ops"}),
    "modules": ("/session/torch_break/steps", {"part": "modules"}),
    "shapes": ("/session/torch_trace/steps", {"part": "shapes"}),
    "kernels": ("/session/kernels/steps", {"part": "kernels"}),
    "input": ("/session/input_bound/steps", {"part": "input"}),
    "critical": ("/session/input_bound/steps", {"part": "critical"}),
    "graph": ("/session/run_metadata/graph", {}),
    "schedule": ("/session/hlo_dump/graph", {"mode": "schedule"}),
    "sql": ("/session/tf2_cnn/sql", {"query": "select name, count(*) n from events group by 1"}),
}

# Controls that a reader at this width cannot reach: out of the window, or cut by what is around
# them, where nothing scrolls sideways. What lies in a picture moves with it; a name that ends in an
# ellipsis is not cut.
_OUT_OF_REACH = """() => {
  const controls = "a[href], button, input, select, textarea, summary, "
    + "[role=button], [role=link], [role=textbox], [role=checkbox], [role=tab]";
  const reaches = (one, {left, right}) => one.left >= left - 1 && one.right <= right + 1;
  const isOut = (control) => {
    const box = control.getBoundingClientRect();
    if (!control.checkVisibility({visibilityProperty: true}) || !box.width || !box.height
        || control.matches(".skip") || control.ownerSVGElement) return false;
    let at = control;
    while ((at = at.parentElement) && at !== document.body) {
      const {overflowX, textOverflow} = getComputedStyle(at);
      if (/auto|scroll/.test(overflowX) || textOverflow === "ellipsis") return false;
      if (/hidden|clip/.test(overflowX) && !reaches(box, at.getBoundingClientRect())) return true;
    }
    return !reaches(box, {left: 0, right: innerWidth});
  };
  return [...document.querySelectorAll(controls)].filter(isOut)
    .map((one) => `${one.tagName} ${one.className}: ${one.ariaLabel ?? one.textContent}`);
}"""
_SIDEWAYS_PX = "() => Math.max(document.documentElement.scrollWidth - innerWidth, 0)"


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_fits_every_width(page, server, name):
    path, query = VIEWS[name]
    open_view(page, server, path, **query)
    for width, height in HEIGHTS.items():
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        eventually(lambda: page.evaluate(_SIDEWAYS_PX), 0)
        eventually(lambda: page.evaluate(_OUT_OF_REACH), [])
        if width == NARROWEST:
            expect_accessible_in_both_schemes(page, f"widths_{name}_{width}")
        else:
            screenshot(page, f"widths_{name}_{width}")


def test_the_bar_of_the_timeline_wraps_on_a_phone(page, server):
    """The filter of lines and what it says are seen without scrolling sideways."""
    page.set_viewport_size({"width": 390, "height": 844})
    open_view(page, server, "/session/tf2_cnn/timeline", only="nothing like it")
    for control in (page.get_by_label("Show only lines"), page.get_by_text("hidden: show all")):
        control.wait_for()
        box = control.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.locator(".tl-bar").evaluate("(bar) => bar.scrollWidth <= bar.clientWidth")
