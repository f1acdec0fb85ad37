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

from peakline.web import page_files

SMALL = "/session/graph/summary"
"""A view that shows little, where it does not matter what is shown."""
MODULES = [path for path in page_files() if path.endswith(".js")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_loads(page, server, scheme):
    page.emulate_media(color_scheme=scheme)
    load_view(page, server)
    screenshot(page, f"page_{scheme}")
    assert page.title().endswith("Peakline")
    expect_accessible(page)


def test_every_module_loads(page, server):
    """Those of the page's edition: under another address a module would be a second one, which
    begins anew in the document of the first.
    """
    open_view(page, server, SMALL)
    page.is_stale = True
    loaded = page.evaluate(
        """async (paths) => {
          const edition = new URL("..", document.querySelector("script[src$='/js/main.js']").src);
          const names = paths.map((path) => path.replace("/assets/", ""));
          return (await Promise.all(names.map((name) => import(new URL(name, edition))))).length;
        }""",
        MODULES,
    )
    assert loaded == len(MODULES)


def test_what_turns_the_direction_of_a_name_is_spelled(page, server):
    """As the command line spells it: a name must not look like another one."""
    open_view(page, server, SMALL)
    page.is_stale = True
    found = page.evaluate(
        """async () => {
          const {h} = await import("/assets/js/core/dom.js");
          const {contextOf} = await import("/assets/js/core/canvas.js");
          const one = h("p", {title: "a\\u202eb", value: "a\\u202eb"}, "x\\u2066y\\u2069");
          const context = contextOf(document.createElement("canvas"));
          const again = contextOf(context.canvas);
          return [one.textContent, one.title, one.getAttribute("value"), again === context];
        }"""
    )
    assert found == [r"x\u2066y\u2069", r"a\u202eb", "a\u202eb", True]


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
    address = page.evaluate("location.hash")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.evaluate("location.hash") == address


def test_the_keyboard_reaches_the_table_of_a_view(page, server):
    for path, name in (
        ("/", "Sessions"),
        ("/session/leak_list/memory", "Buffers"),
        ("/session/slow_step/steps", "Steps"),
    ):
        load_view(page, server, path)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        link = page.get_by_role("link", name="To the table")
        eventually(lambda: page.evaluate("document.activeElement.id"), "to-table")
        assert link.bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        focused = "[document.activeElement.role, document.activeElement.ariaLabel]"
        role, label = page.evaluate(focused)
        assert role == "grid"
        assert label.startswith(name)
    # Where there is no table there is no link to one.
    load_view(page, server, SMALL)
    page.keyboard.press("Tab")
    assert not page.get_by_role("link", name="To the table").is_visible()
