"""How the page begins: what is requested before its modules are there, and once only."""

from urllib.parse import urlsplit

from tests.web.looking import eventually


def asked(page):
    return [
        parts.path for parts in map(urlsplit, page.watch.requests) if parts.path.startswith("/api/")
    ]


def test_the_list_is_requested_before_the_page_s_modules_are_there(page, server):
    held = []
    page.goto("about:blank")
    page.route("**/js/main.js", lambda route: held.append(route))  # noqa: PLW0108, a function alone
    page.watch.requests.clear()
    page.goto(f"{server.url}/", wait_until="commit")
    eventually(
        lambda: (page.wait_for_timeout(10), asked(page))[1], ["/api/server", "/api/sessions"]
    )
    eventually(lambda: (page.wait_for_timeout(10), len(held))[1], 1)
    held[0].continue_()
    page.unroute("**/js/main.js")
    page.locator(".table .row").first.wait_for()
    assert asked(page).count("/api/server") == asked(page).count("/api/sessions") == 1
