"""Every sample in every view: something is shown, nothing complains, and names are only names."""

import pytest
from tests.web.looking import address, api, open_view, quote_part, screenshot, settle
from tests.web.samples import HOSTILE, MADE, OTHERS, SAMPLES

VIEWS = ("summary", "memory", "timeline", "steps", "graph", "sql")
EVERY_FORMAT = {*OTHERS, "tf2_cnn", "tf2_multihost", "tf2_two_devices", "jax_cpu", "gpus"}
"""Sessions of every format, with and without steps, memory, devices and several hosts."""


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_names_are_shown_as_they_are(page, server, view):
    open_view(page, server, f"/session/{quote_part(HOSTILE)}/{view}")
    screenshot(page, f"hostile_{view}")
    assert page.locator("img[src=x]").count() == 0
    page.watch.hear()
    assert page.watch.complaints == []  # no dialog above all
    assert HOSTILE in page.locator("#header").inner_text()


@pytest.mark.parametrize("name", sorted({*EVERY_FORMAT, *MADE} - {HOSTILE}))
def test_every_view_shows_every_sample(page, server, name):
    shows_something(page, server, name, VIEWS)


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - EVERY_FORMAT))
@pytest.mark.parametrize("views", [["summary"], pytest.param(VIEWS, marks=pytest.mark.soak)])
def test_programs_show_what_their_formats_do(page, server, name, views):
    """The findings of a summary differ; what else a view shows of them is the same code."""
    shows_something(page, server, name, views)


def shows_something(page, server, name, views):
    """What is missing is told in words, and nothing complains."""
    if name == "damaged":
        page.allowed_failures.append("/api/sessions/damaged/")
    open_view(page, server, "/nosuch")
    if len(api(server, f"sessions/{name}")["hosts"]) > 1:
        views = ["job" if view == "summary" else view for view in views]
    for view in views:
        page.evaluate("(hash) => { location.hash = hash; }", address(f"/session/{name}/{view}"))
        page.wait_for_selector(f"#main.{view}")
        settle(page)
        screenshot(page, f"{view}_{name}")
        assert page.locator("#main").inner_text().strip(), view
        if name != "damaged":
            assert page.locator("#main .state.error").count() == 0, view
