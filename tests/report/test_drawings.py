"""Drawings read back: what a path says is what the profile's records say."""

import itertools
import re

import numpy as np
import pytest
from tests.each_row import each_row
from tests.memory.records import alloc, free
from tests.report.document import report_of

import peakline
from peakline.figures import drawings
from peakline.figures.look import COLOURS
from peakline.render.html.svg.picture import NARROW, WIDE, picture_of

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TIMES = {"ns": 10**3, "µs": 10**6, "ms": 10**9, "s": 10**12}


def svg_of(page, begin):
    """The wide drawing whose label begins so."""
    result = re.findall(
        r'<svg[^>]*class="wide"[^>]*aria-label="([^"]*)".*?</svg>', page.source, re.DOTALL
    )
    place = next(k for k, label in enumerate(result) if label.startswith(begin))
    return re.findall(r'<svg[^>]*class="wide".*?</svg>', page.source, re.DOTALL)[place]


def corners(path):
    """The corners of a path of M, H and V."""
    x = y = 0.0
    for letter, values in re.findall(r"([MHV])([-\d. ]+)", path):
        numbers = [float(one) for one in values.split()]
        x, y = {
            "M": lambda n: (n[0], n[1]),
            "H": lambda n, y=y: (n[0], y),
            "V": lambda n, x=x: (x, n[0]),
        }[letter](numbers)
        yield x, y


def marks(svg):
    """Value and pixel of the marks of the x axis, then of the y axis, from the texts alone."""
    across, upright = {}, {}
    for attrs, text in re.findall(r"<text([^>]*)>([-\d.,]+)</text>", svg):
        place = {name: float(value) for name, value in re.findall(r'\b([xy])="([-\d.]+)"', attrs)}
        value = float(text.replace(",", ""))
        if 'text-anchor="middle"' in attrs:
            across[value] = place["x"]
        elif 'text-anchor="end"' in attrs:
            upright[value] = place["y"] - 11 * 0.35
    return across, upright


def line_through(result):
    """The values of pixels, by the first and the last mark."""
    (low, start), (high, end) = min(result.items()), max(result.items())
    return lambda pixel: low + (pixel - start) * (high - low) / (end - start)


@each_row(
    "name",
    ["sessions/tf2_cnn", "programs/leak_list.xplane.pb.gz", "programs/fragmentation.xplane.pb.gz"],
)
def test_memory_over_time_is_that_of_the_records(read, name):
    page, profile = read(name)
    svg = svg_of(page, "Memory in use over time")
    across, upright = marks(svg)
    time, size = line_through(across), line_through(upright)
    x_unit = _TIMES[re.search(r"start \((\S+)\)", svg)[1]]
    y_unit = _UNITS[re.search(r"Memory in use \((\S+)\)", svg)[1]]
    colour = f"var(--c{COLOURS[0][1:].lower()})"
    (path,) = re.findall(
        rf'<path d="([^"]+)"[^>]*stroke="{re.escape(colour)}"[^>]*class="line"', svg
    )
    drawn = [(time(x) * x_unit, size(y) * y_unit) for x, y in corners(path)]
    events = profile.columns("allocator_events")
    used, times = events.array("in_use_bytes"), events.array("time_ps")
    pixel = (time(1) - time(0)) * x_unit
    step = abs(size(1) - size(0)) * y_unit
    assert max(y for _, y in drawn) == pytest.approx(int(used.max()), abs=0.2 * step)
    # Between two corners of one height it is what was in use then, of any record a pixel around.
    for (a, y), (b, other) in itertools.pairwise(drawn):
        if y != other or b - a < 3 * pixel:
            continue
        middle = (a + b) / 2
        near = used[(times >= middle - 2 * pixel) & (times <= middle + 2 * pixel)]
        values = np.concatenate([near, used[times <= middle][-1:]])
        assert np.abs(values - y).min() <= 0.6 * step


def test_bars_are_as_long_as_their_ops(read):
    page, profile = read("programs/leak_list.xplane.pb.gz")
    svg = svg_of(page, "Ops of the host by self time")
    spent = sorted(
        (row["self_ps"] for row in profile.columns("op_stats").to_pylist()), reverse=True
    )
    widths = [float(one) for one in re.findall(r'd="M[-\d. ]+h([\d.]+)v', svg)][:20]
    assert widths == sorted(widths, reverse=True)
    for width, ps in zip(widths, spent, strict=False):
        assert width == pytest.approx(widths[0] * ps / spent[0], abs=0.8)


def test_parts_of_an_icicle_are_as_wide_as_their_bytes(made):
    rows = [alloc(1, 600, op="a/x"), alloc(2, 300, op="a/y"), alloc(3, 100, op="b")]
    svg = svg_of(made([*rows, free(9)]), "Composition of the peak")
    result = re.findall(r'd="M([\d.]+) ([\d.]+)h([\d.]+)v[^>]*><title>([^<]*)', svg)
    widths = {text.splitlines()[0]: float(width) for _, _, width, text in result}
    assert widths["a"] == pytest.approx(WIDE * 0.9, abs=0.1)
    assert widths["a/x"] == pytest.approx(WIDE * 0.6, abs=0.1)
    assert widths["b"] == pytest.approx(WIDE * 0.1, abs=0.1)


def test_many_records_make_a_small_drawing(made):
    rows = []
    for number in range(30_000):
        rows.append(alloc(number, 1000 + number % 700, op="a", time_ps=2 * number))
        rows.append(free(number, time_ps=2 * number + 1))
    svg = svg_of(made(rows), "Memory in use over time")
    assert len(svg) < 100_000
    assert svg.count("<title>") <= 100


HOSTILE = "a\u202e\u2066\x1b[31m\u200f</svg><script>x</script>%{y} $x$ &amp; <b>b"


def test_names_in_drawings_are_spelled_and_stay_text(made):
    rows = [
        alloc(n, 10**6, op=f"{HOSTILE}/{n % 2}", allocator=HOSTILE, time_ps=n * 100)
        for n in range(8)
    ]
    steps = [
        {"step_id": n, "name": f"{HOSTILE}{n}", "start_ps": 100 * n, "end_ps": 100 * n + 90}
        for n in range(8)
    ]
    page = made(rows, steps)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x1b]", page.source)
    texts = " ".join(page.texts("text") + page.texts("title"))
    assert "\\u202e" in texts
    assert "$x$" in texts
    assert page.all("script") == []


def test_a_narrow_drawing_is_that_of_the_same_numbers(root):
    with peakline.open(str(root / "tests/data/sessions/tf2_cnn")) as profile:
        drawn = drawings.memory_over_time(profile)
        again = report_of(profile)
    for width in (WIDE, NARROW):
        assert picture_of(drawn, f"Memory in use over time. {drawn.description}", width) in (
            again.source
        )
