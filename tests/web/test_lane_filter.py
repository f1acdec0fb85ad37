"""Lines of the timeline filtered by name: expressions, in linear time, as the service has them."""

import re

from tests.web.looking import (
    eventually,
    expect_accessible,
    load_again,
    open_view,
    settle,
    tells,
    wait_for_params,
)
from tests.web.timelines import open_timeline, tool

from peakline.patterns import Pattern


def names_of_lanes(page):
    """The lines that are shown, from the top."""
    settle(page)
    return page.locator(".tl-line").evaluate_all(
        "(all) => all.map((one) => one.title.split('\\n').at(0))"
    )


def test_lines_are_filtered_by_an_expression(page, other_page, server):
    lines = tool(server, "slow_step", view="lanes")["line_name"]
    open_timeline(page, server, "slow_step")
    field = page.get_by_role("textbox", name="Show only lines whose name matches")
    for text, keep in (
        ("/eigen.-1[0-9]+$/", lambda name: "Eigen/-1" in name),
        ("-/^.{0,60}(eigen|python)/", lambda name: not re.search("eigen|python", name.lower())),
        ("python | /eigen.-1/", lambda name: re.search("python|eigen.-1", name.lower())),
    ):
        wanted = [name for name in lines if keep(name)]
        assert 0 < len(wanted) < len(lines), text
        field.fill(text)
        wait_for_params(page, only=text)
        eventually(lambda: names_of_lanes(page), wanted)
    load_again(other_page, page.evaluate("location.href"))
    other_page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    eventually(lambda: names_of_lanes(other_page), names_of_lanes(page))
    # What would take a backtracking engine for ever.
    field.fill("/(((.+)+)+)+(x+x+)+!/")
    eventually(lambda: names_of_lanes(page), [])
    field.fill("/python(/")
    tells(page.locator(".tl-bar .bad"), "no expression: a ( without its )")
    assert field.get_attribute("aria-invalid") == "true"
    expect_accessible(page)
    field.fill("/python/")
    page.locator(".tl-bar .bad").wait_for(state="hidden")


MATCHES = """async ([pairs]) => {
  const place = new URL("assets/js/core/expression.js", location.href);
  const { expression } = await import(place);
  return pairs.map(([source, text]) => {
    try { return expression(source)(text); } catch (error) { return error.message; }
  });
}"""


def test_expressions_are_those_of_re2(page, server):
    """Pairs of expressions and texts, against the service's own engine."""
    open_view(page, server, "/session/slow_step/summary")
    sources = [
        "a", "^a", "a$", "stream #[0-9]+$", "(a+)+$", "(?:ab|c){2,3}x", "[^a-c]$", r"\d{2}",
        r"\s\w+", "a.*b|c", "x?y*z+", "[]a]", r"[\d-]x", "^$", "", "tf_.*eigen", "a{0}b",
        "(a|b)*?c", "a{2,}", r"\.", "[a-]x", r"\W\D\S",
    ]  # fmt: skip
    texts = [
        "", "a", "ab", "Stream #12", "stream #x", "aaaaaaab", "ababx", "ccx", "abcab", "xyz", "zz",
        "TF_xx_Eigen", "-x", "]", "5x", "b c", "a.b", "aa",
    ]  # fmt: skip
    pairs = [(source, text) for source in sources for text in texts]
    expected = [bool(Pattern(f"(?i){source}").is_in([text])[0]) for source, text in pairs]
    assert page.evaluate(MATCHES, [pairs]) == expected
    bad = [
        "(", "a)", "[a", "*a", r"\1", "(?=a)", "a{200}", "(((a{100}){100}){100})", "\\", "a" * 201,
    ]  # fmt: skip
    for told in page.evaluate(MATCHES, [[(one, "a") for one in bad]]):
        assert isinstance(told, str)
        assert "\n" not in told
