"""How the page begins: what is requested before its modules are there, and once only."""

from urllib.parse import urlsplit

from tests.web.looking import load_view


def asked(page):
    return [
        parts.path for parts in map(urlsplit, page.watch.requests) if parts.path.startswith("/api/")
    ]


def places(page, *ends):
    """When the first request was sent whose address ends so."""
    found = [urlsplit(url).path for url in page.watch.requests]
    return [next(n for n, path in enumerate(found) if path.endswith(end)) for end in ends]


def test_the_list_is_requested_before_the_modules_of_its_view(page, server):
    page.watch.requests.clear()
    load_view(page, server)
    page.locator(".table .row").first.wait_for()
    first = asked(page)[:2]
    assert first == ["/api/server", "/api/sessions"]
    assert asked(page).count("/api/server") == asked(page).count("/api/sessions") == 1
    listed, view = places(page, "/api/sessions", "views/sessions/list.js")
    assert listed < view
