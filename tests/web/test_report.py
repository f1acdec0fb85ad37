"""The report in a browser: axe, a phone's width, paper, and that its policy stops nothing of it."""

import io
import re
from functools import cache

import pytest
from tests.web.looking import (
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    settle,
)

import peakline
from peakline.report import write_report

SAMPLES = (
    "sessions/tf2_cnn", "sessions/jax_cpu", "programs/leak_list.xplane.pb.gz",
    "programs/time/slow_step.xplane.pb.gz", "chrome_trace/noleak.pt.trace.json.gz",
    "oom_report/tf_bfc_oom.log.gz", "graph_def/frozen.pb",
)  # fmt: skip

WIDE, NARROW = "figure > svg.wide", "figure > svg.narrow"


@pytest.fixture(scope="session")
def source(root):
    """The report of a file of tests/data, as text."""

    @cache
    def make(name):
        file = io.BytesIO()
        with peakline.open(str(root / "tests" / "data" / name)) as profile:
            write_report(profile, file)
        return file.getvalue().decode()

    return make


def show(page, text):
    # The policy of what was shown before would be that of the report.
    page.goto("about:blank")
    page.set_content(text)
    settle(page)


def style(place, name):
    return place.evaluate("(one, name) => getComputedStyle(one)[name]", name)


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("name", SAMPLES)
def test_everyone_can_read_it(page, source, name):
    show(page, source(name))
    expect_accessible_in_both_schemes(page, f"report_{name.replace('/', '_')}")
    assert overflow(page) <= 0


@pytest.mark.parametrize("name", SAMPLES)
def test_a_phone_shows_all_of_it_without_scrolling_sideways(page, source, name):
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, source(name))
    assert overflow(page) <= 0
    for drawing in page.locator(NARROW).all():
        assert drawing.is_visible()
    assert not any(drawing.is_visible() for drawing in page.locator(WIDE).all())
    expect_accessible(page)


def test_paper_is_light_and_shows_what_a_screen_folds(page, source):
    show(page, source("programs/leak_list.xplane.pb.gz"))
    # After it is shown: a document that is loaded meanwhile may begin with the medium before.
    page.emulate_media(color_scheme="dark", media="print")
    eventually(lambda: style(page.locator("body"), "backgroundColor"), "rgb(255, 255, 255)")
    assert page.locator("details:not([open])").count() > 3
    for table in page.locator("figure details table").all():
        assert table.evaluate("one => one.checkVisibility({contentVisibilityAuto: true})")
        assert table.bounding_box()["height"] > 30
    assert page.locator(WIDE).first.is_visible()
    assert not page.locator(NARROW).first.is_visible()
    pages = re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))
    assert 4 <= len(pages) <= 20
    page.emulate_media(color_scheme="light", media="screen")


def test_the_colors_of_a_drawing_are_those_of_the_scheme(page, source):
    show(page, source("sessions/tf2_cnn"))
    line = page.locator(f"{WIDE} path.line").first
    eventually(lambda: style(line, "stroke"), "rgb(47, 111, 208)")
    page.emulate_media(color_scheme="dark")
    eventually(lambda: style(line, "stroke"), "rgb(106, 165, 248)")
    page.emulate_media(color_scheme="light")
