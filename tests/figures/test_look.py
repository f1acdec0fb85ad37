"""Figures look and speak as the page does."""

import re

from peakline.figures.look import ALARM, COLOURS, DARK
from peakline.timing.steps.facts import PARTS


def variables(css, selector):
    block = css[css.index(selector) :].partition("}")[0]
    return {name: value.upper() for name, value in re.findall(r"--([\w-]+): (#\w+);", block)}


def test_colours_are_those_of_the_page(root):
    css = (root / "src/peakline/web/static/styles/base.css").read_text()
    light, dark = variables(css, ":root {"), variables(css, ':root[data-theme="dark"] {')
    series = [f"series-{place}" for place in range(1, len(COLOURS) + 1)]
    assert [light[name] for name in series] == list(COLOURS)
    assert [dark[name] for name in series] == [DARK[colour].upper() for colour in COLOURS]
    assert (light["bad"], dark["bad"]) == (ALARM, DARK[ALARM])


def test_parts_of_a_step_are_called_as_on_the_page(root):
    script = (root / "src/peakline/web/static/js/core/parts.js").read_text()
    found = dict(re.findall(r'name: "(\w+)", text: "([^"]+)"', script))
    assert {f"{name}_ps": text for name, text in found.items()} == PARTS


def test_every_colour_is_its_own_on_either_page():
    assert len(set(COLOURS)) == len(COLOURS)
    assert len({DARK[colour] for colour in COLOURS}) == len(COLOURS)
