"""The page in a browser: it loads, offline and under its policy, and asks for a token."""

import pytest
from tests.waiting import until
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    load_view,
    open_view,
    screenshot,
    settle,
    tells,
)
from tests.web.samples import make_logdir

from peakline.web import PLOTLY_SCRIPT, page_files

SMALL = "/session/graph/summary"
"""A view that shows little, where it does not matter what is shown."""
MODULES = [path for path in page_files() if path.endswith(".js") and path != PLOTLY_SCRIPT]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_loads(page, server, scheme):
    page.emulate_media(color_scheme=scheme)
    load_view(page, server)
    screenshot(page, f"page_{scheme}")
    assert page.title().endswith("Peakline")
    expect_accessible(page)


def test_every_module_loads(page, server):
    open_view(page, server, SMALL)
    loaded = page.evaluate(
        "async (paths) => (await Promise.all(paths.map((path) => import(path)))).length", MODULES
    )
    assert loaded == len(MODULES)


def test_plotly_draws_under_the_policy(page, server):
    """With what our figures have: lines, bars, an icicle, bands, bold words, and hover labels."""
    open_view(page, server, SMALL)
    page.is_stale = True
    page.evaluate(
        """async () => {
          const {drawPlot, dropPlot} = await import("/assets/js/core/plot.js");
          const kinds = [
            [{type: "scatter", x: [1, 2, 3], y: [2, 1, 3], fill: "tozeroy", name: "<b>a</b>"}],
            [{type: "bar", x: ["a", "b"], y: [1, 2]}, {type: "bar", x: ["a", "b"], y: [2, 2]}],
            [{type: "icicle", labels: ["r", "a"], parents: ["", "r"], values: [3, 1]}],
          ];
          const main = document.getElementById("main");
          for (const traces of kinds) {
            const place = document.createElement("div");
            place.style.height = "250px";
            place.style.width = "700px";
            place.className = "of-this-test";
            main.replaceChildren(...main.querySelectorAll(".of-this-test"), place);
            await drawPlot(place, traces, {
              title: {text: "<b>bold</b> title"}, barmode: "stack", showlegend: true,
              shapes: [{type: "rect", x0: 1, x1: 2, y0: 0, y1: 3}],
              annotations: [{x: 2, y: 2, text: "<b>peak</b>"}],
            });
          }
        }"""
    )
    plots = page.locator(".of-this-test")
    assert plots.count() == 3
    for place, (x, y) in enumerate(((350, 145), (180, 100), (500, 45))):
        plots.nth(place).hover(position={"x": x, "y": y})
        plots.nth(place).locator(".hoverlayer .hovertext").first.wait_for()
        screenshot(page, f"plotly_{place}", plots.nth(place))
    assert plots.locator(".modebar-btn[data-title]").count() > 0
    titles = plots.locator(".modebar-btn").evaluate_all("all => all.map(one => one.dataset.title)")
    # Plotly would send the data to its makers.
    assert [title for title in titles if "hare" in title or "cloud" in title.lower()] == []


def test_the_policy_holds_in_the_browser(page, server):
    """What an attacker would try is refused, and seen by these tests."""
    open_view(page, server, SMALL)
    page.is_stale = True
    outcome = page.evaluate(
        """async () => {
          const tried = {};
          const attempt = async (name, act) => {
            try { await act(); tried[name] = "done"; } catch (error) { tried[name] = error.name; }
          };
          await attempt("markup", () => { document.body.innerHTML = "<b>x</b>"; });
          await attempt("script", () => { document.createElement("script").src = "/x.js"; });
          await attempt("outside", () => fetch("http://127.0.0.2:9/"));
          return tried;
        }"""
    )
    assert outcome == {"markup": "TypeError", "script": "TypeError", "outside": "TypeError"}

    def seen():
        page.watch.hear()
        told = [what for what, _ in page.watch.complaints]
        return [
            sum(f"against the policy: {rule}" in what for what in told)
            for rule in ("require-trusted-types-for", "connect-src")
        ]

    eventually(seen, [2, 1])
    page.watch.hear()  # the console's lines about them, too
    page.watch.complaints.clear()  # they were asked for


def test_an_address_that_names_nothing_says_so(page, server):
    open_view(page, server, "/nosuch")
    assert "There is no such page" in page.locator("#main").inner_text()
    screenshot(page, "no_such_page")
    expect_accessible(page)


def test_a_session_that_is_not_there_is_an_error_with_its_reason(page, server):
    page.allowed_failures.append("/api/sessions/nosuch")
    open_view(page, server, "/session/nosuch/memory")
    error = page.locator("#main .state.error")
    assert "no session 'nosuch'" in error.inner_text()
    screenshot(page, "no_such_session")
    expect_accessible(page)


def test_a_server_that_ended_is_told(page, server):
    open_view(page, server, "/session/leak_list/summary")
    page.route("**/api/**", lambda route: route.abort("connectionrefused"))
    page.allowed_failures.append("/api/")
    page.goto(f"{server.url}/#/session/leak_list/sql")
    tells(page.locator("#main.sql .state.error").first, "is it still running?")
    screenshot(page, "no_server")


def test_the_page_asks_for_the_token_and_keeps_it(serve, page, tmp_path):
    word = "a-t0ken-of-the-tests"
    tokens = tmp_path / "tokens"
    tokens.write_text(word, encoding="utf-8")
    tokens.chmod(0o600)
    logdir = make_logdir(tmp_path / "logs", "leak_list")
    guarded_server = serve(logdir, token_file=str(tokens), read_only=True, token=word)
    page.allowed_failures.append("/api/")
    page.goto(f"{guarded_server.url}/")
    field = page.locator("dialog input")
    field.wait_for()
    screenshot(page, "token")
    expect_accessible(page)
    field.fill(guarded_server.token)
    field.press("Enter")
    page.locator("dialog").wait_for(state="detached")
    tells(page.locator("#main"), "leak_list")
    settle(page)
    assert api(guarded_server, "sessions")[0]["session_id"] == "leak_list"
    page.reload()
    settle(page)
    assert page.locator("dialog").count() == 0


def test_help_is_a_key_away(page, server):
    open_view(page, server, SMALL)
    page.keyboard.press("?")
    dialog = page.locator("dialog[open]")
    tells(dialog, "Keys")
    screenshot(page, "help")
    expect_accessible(page)
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")


def test_light_and_dark_can_be_switched(page, server):
    open_view(page, server, SMALL)
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.get_by_role("button", name="Light or dark").click()
    until(lambda: page.evaluate(background) != before, "another color")
    after = page.evaluate(background)
    page.reload()
    settle(page)
    assert page.evaluate(background) == after


def test_the_keyboard_reaches_the_content_at_once(page, server):
    load_view(page, server, SMALL)
    page.keyboard.press("Tab")
    eventually(lambda: page.evaluate("document.activeElement.textContent"), "To the content")
    screenshot(page, "skip_link")
