"""Links of findings to the timeline: each chooses a step, a range, or an event that there is."""

from urllib.parse import parse_qs

import pytest
from tests.web.looking import eventually, open_view
from tests.web.timelines import tool


@pytest.mark.parametrize("session", ["slow_step", "recompiling", "eager_loop", "input_bound"])
def test_every_link_to_the_timeline_chooses_something(page, server, session):
    open_view(page, server, f"/session/{session}/steps")
    findings = page.locator("article.finding")
    eventually(lambda: findings.count() > 0, expected=True)
    links = findings.locator("a").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('href'))"
    )
    for link in links:
        place, _, query = link.partition("?")
        if not place.endswith("/timeline"):
            continue
        asked = {name: value[0] for name, value in parse_qs(query).items()}
        assert {"step", "range", "find", "event"} & set(asked), link
        if "find" in asked:
            assert tool(server, session, view="find", search=asked["find"])["found"], link
