"""What comes late undoes nothing: answers, timers and events, after the reader went on."""

import pytest
from tests.web.looking import (
    address,
    api,
    eventually,
    open_view,
    outwait_timers,
    params,
    settle,
    tells,
    wait_for_params,
)
from tests.web.test_compare import pick
from tests.web.timelines import canvas, found, loaded, open_timeline, tool

from peakline.text import size_text

# Questions that have `held` in them wait until they are let go; null holds none.
HOLD = """() => {
  const {fetch} = window;
  window.held = null;
  window.waiting = [];
  window.late = 0;
  window.letAllGo = () => {
    window.held = null;
    for (const go of window.waiting.splice(0)) go();
  };
  window.holdNoMore = () => { window.fetch = fetch; };
  window.fetch = async (path, ...options) => {
    if (!window.held || !String(path).includes(window.held)) return fetch(path, ...options);
    await new Promise((go) => window.waiting.push(go));
    window.late++;
    try {
      return await fetch(path, ...options);
    } finally {
      window.late--;
    }
  };
}"""

# In the question for the next match, and in no other: where matches are in view is asked for after
# every move, the one to the chosen event at the beginning too, which comes when it comes.
NEXT_MATCH = "width=1&search="


@pytest.fixture
def page(page, server):
    open_view(page, server, "/nosuch")
    page.evaluate(HOLD)
    yield page
    page.evaluate("() => holdNoMore()")


def hold(page, text):
    """Keep questions from the server; None: those to come go at once."""
    page.evaluate("(text) => { held = text; }", text)


def held(page, many=1):
    """Come back when so many questions wait."""
    eventually(lambda: page.evaluate("waiting.length"), many)


def let_go(page):
    """Ask what was held; come back when it is answered and what comes of the answers is done."""
    page.evaluate("() => letAllGo()")
    eventually(lambda: page.evaluate("late"), 0)
    page.watch.hear()
    outwait_timers(page)


def focused(page):
    return page.evaluate("document.activeElement.id || document.activeElement.ariaLabel")


def memory(server, **query):
    return api(server, "sessions/leak_list/tools/live_memory", **query)


def test_a_zoom_is_not_told_to_the_address_before_it(page, server):
    open_timeline(page, server, "slow_step", q="matmul")
    page.evaluate("location.hash = location.hash.replace('matmul', 'train')")
    tells(page.locator(".tl-found"), "28 events")
    page.keyboard.press("w")
    page.evaluate("history.back()")
    tells(page.locator(".tl-found"), "196 events")
    outwait_timers(page)
    assert params(page) == {"q": "matmul"}


def test_a_link_that_was_followed_is_not_overtaken(page, server):
    """The event of a changed address comes a moment after the change."""
    open_view(page, server, "/session/tf2_cnn/sql")
    page.get_by_label("Query", exact=True).fill("select 1 as a")
    page.evaluate(
        """(hash) => {
          location.hash = hash;
          document.querySelector("button.primary").click();
        }""",
        address("/session/tf2_cnn/summary"),
    )
    page.locator("#main.summary dl.facts").first.wait_for()
    assert page.evaluate("location.hash") == address("/session/tf2_cnn/summary")


def test_an_address_that_changes_while_the_profile_is_read_is_shown(page, server):
    at = 600_000_000_000
    open_view(page, server)
    hold(page, "live_memory")
    page.evaluate("(hash) => { location.hash = hash; }", address("/session/leak_list/memory"))
    held(page)
    page.evaluate("(at) => { location.hash += `?at=${at}`; }", at)
    let_go(page)
    settle(page)
    result = memory(server, at_ps=at)
    assert result["bytes_in_use"] != memory(server)["bytes_in_use"]
    tells(page.locator(".memory-live dl.facts").first, size_text(result["bytes_in_use"]))


def test_of_two_moments_the_later_click_counts(page, server):
    open_view(page, server, "/session/leak_list/memory")
    chart = page.locator(".memory-chart[aria-busy=false]")
    hold(page, "view=counter")
    chart.click(position={"x": 300, "y": 150})
    held(page)
    hold(page, None)
    chart.click(position={"x": 700, "y": 150})
    page.wait_for_function("() => location.hash.includes('at=')")
    later = params(page)["at"]
    let_go(page)
    assert params(page)["at"] == later


def test_what_is_typed_is_searched_whatever_is_clicked_next(page, server):
    open_view(page, server, "/session/leak_list/memory")
    page.evaluate(
        """() => {
          const field = document.querySelector(".memory-live input[type=search]");
          field.focus();
          field.value = "hidden";
          field.dispatchEvent(new Event("input"));
          document.querySelector("[data-group=op]").focus();
          document.querySelector("[data-group=op]").click();
        }"""
    )
    wait_for_params(page, q="hidden", group="op")
    settle(page)
    total = memory(server, search="hidden", group="op")["rows_total"]
    tells(page.locator(".memory-live .total"), f"{total} op")


def test_what_is_typed_is_searched_however_the_timeline_moves(page, server):
    open_timeline(page, server, "slow_step", q="matmul")
    loaded(page)
    page.get_by_role("searchbox").focus()
    page.evaluate(
        """() => {
          const field = document.querySelector(".tl-search input");
          field.value = "train";
          field.dispatchEvent(new Event("input"));
          document.querySelector("canvas.tl-lanes").dispatchEvent(new WheelEvent("wheel",
            {deltaY: -100, ctrlKey: true, clientX: 700, clientY: 300, bubbles: true,
              cancelable: true}));
        }"""
    )
    wait_for_params(page, q="train")
    tells(page.locator(".tl-found"), "28 events")


def test_every_press_goes_one_match_further(page, server):
    first = found(server, "slow_step", "matmul")["event"]
    expected = first
    for _ in range(3):
        matches = tool(server, "slow_step", view="search", search="matmul", event=expected)
        expected = matches["next"]["event"]
    open_timeline(page, server, "slow_step", q="matmul", event=first)
    loaded(page)
    hold(page, NEXT_MATCH)
    for _ in range(3):
        page.keyboard.press("n")
    held(page)
    let_go(page)
    wait_for_params(page, event=expected)


def test_a_match_that_comes_late_does_not_take_the_choice_away(page, server):
    first = found(server, "slow_step", "matmul")["event"]
    open_timeline(page, server, "slow_step", q="matmul", event=first)
    loaded(page)
    hold(page, NEXT_MATCH)
    page.keyboard.press("n")
    held(page)
    page.keyboard.press("Escape")
    wait_for_params(page, event=None)
    let_go(page)
    assert "event" not in params(page)
    assert canvas(page).get_attribute("aria-label").count("; chosen: ") == 0


def test_an_older_list_does_not_take_the_place_of_a_newer_one(page, server):
    open_view(page, server, q="tf2")
    hold(page, "api/sessions")
    page.get_by_role("button", name="Refresh").click()
    held(page)
    hold(page, None)
    page.route("**/api/sessions?*", lambda route: route.fulfill(json=[]))
    page.get_by_role("button", name="Refresh").click()
    page.locator(".nothing-yet").wait_for()
    page.unroute("**/api/sessions?*")
    let_go(page)
    assert page.locator(".nothing-yet").is_visible()


def test_the_focus_stays_in_a_table_that_is_drawn_anew(page, server):
    picked = {"first": "tf2_cnn", "second": "leak_list", "with": "a,b,c,d,e,f,g,h"}
    open_view(page, server, sort="name", **picked)
    box = page.get_by_label("Compare doubled_batch", exact=True)
    box.focus()
    page.keyboard.press("Space")  # the eleventh: the first is taken back, which draws the rows
    wait_for_params(page, first="leak_list", second="a")
    eventually(box.is_checked, expected=True)
    assert focused(page) == "Compare doubled_batch"


def test_the_focus_stays_where_a_session_is_chosen(page, server):
    open_view(page, server, "/compare")
    pick(page, "Before", "leak_list")
    wait_for_params(page, first="leak_list")
    eventually(lambda: focused(page), "first-session")
