"""The report's page, and every sample."""

import itertools
import re

import pytest
from tests.each_row import each_row
from tests.report.document import hash_of, report_of

import peakline
from peakline.errors import InputError

SAMPLES = [
    "programs/leak_list.xplane.pb.gz", "programs/fragmentation.xplane.pb.gz",
    "programs/leak_list_healthy.xplane.pb.gz", "sessions/tf2_two_devices", "sessions/jax_cpu",
    "memory_log/tf1_control_flow.log.gz", "memory_log/session_default_allocator.log.gz",
    "oom_report/tf_bfc_oom.log.gz", "pprof/device_memory.pprof.pb.gz",
    "run_metadata/tf1_grpc.pb.gz", "jobs/ddp_host/faulty", "jobs/ddp_fat/faulty",
]  # fmt: skip


@each_row("name", SAMPLES)
def test_nothing_is_fetched(read, name):
    page, _ = read(name)
    for tag, attrs, _ in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "audio", "video", "base"}
        assert not {"src", "srcset", "action", "formaction", "background", "ping"} & attrs.keys()
        assert attrs.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attrs)
    (style,) = page.texts("style")
    assert "url(" not in style
    assert "@import" not in style
    assert "://" not in page.text


@each_row("name", SAMPLES)
def test_the_policy_allows_its_own_style_and_nothing_else(read, name):
    page, _ = read(name)
    (style,) = [text for tag, _, text in page.elements if tag == "style"]
    assert page.policy == {
        "default-src": "'none'",
        "style-src": hash_of("".join(style)),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert page.all("script") == []
    assert not [attrs for _, attrs, _ in page.elements if "style" in attrs]


@each_row("name", SAMPLES)
def test_it_has_a_language_a_title_landmarks_and_headings_in_order(read, name):
    page, _ = read(name)
    assert page.all("html")[0][0]["lang"] == "en"
    kind = "Job" if name.startswith("jobs/") else "Profile"
    assert page.texts("title")[0].startswith(f"{kind} report: ")
    assert [len(page.all(name)) for name in ("header", "main", "footer")] == [1, 1, 1]
    levels = [level for level, _ in page.headings]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), page.headings
    assert all(title for _, title in page.headings)


@each_row("name", SAMPLES)
def test_ids_are_unique_and_links_lead_somewhere(read, name):
    page, _ = read(name)
    ids = [attrs["id"] for _, attrs, _ in page.elements if "id" in attrs]
    assert len(set(ids)) == len(ids)
    named = [
        attrs["aria-labelledby"] for _, attrs, _ in page.elements if "aria-labelledby" in attrs
    ]
    links = [attrs["href"][1:] for attrs, _ in page.all("a")]
    assert {*named, *links} <= set(ids)


@each_row("name", SAMPLES)
def test_every_table_has_a_caption_and_headed_columns_and_rows(read, name):
    page, _ = read(name)
    tables = page.all("table")
    assert len(page.all("caption")) == len(tables) > 0
    assert all(page.texts("caption"))
    heads = page.all("th")
    assert {attrs["scope"] for attrs, _ in heads} == {"col", "row"}
    assert all(text for _, text in heads)
    assert len(page.all("th", scope="row")) >= len(tables)


@each_row("name", SAMPLES)
def test_every_figure_says_what_it_shows_and_has_a_table(read, name):
    page, _ = read(name)
    assert all(len(label) > 40 for label in page.drawings)
    figures = len(page.all("figure"))
    assert len(page.drawings) == len(page.all("figcaption")) == figures
    assert len(page.all("table")) >= figures
    assert all(attrs["viewbox"].startswith("0 0 ") for attrs, _ in page.all("svg", role="img"))


@each_row("name", SAMPLES)
def test_no_sentence_has_a_hole(read, name):
    page, _ = read(name)
    assert not re.search(r"\bNone\b|\bnan\b|\binf\b|\{|\}|  |(?<!\.)\.\.(?![/.])|, ,", page.text)


def test_the_same_profile_gives_the_same_bytes(read, root):
    from tests.report.document import report_of

    import peakline

    name = "programs/leak_list.xplane.pb.gz"
    again = report_of(peakline.open(str(root / "tests" / "data" / name)))
    assert again.source == read(name)[0].source


MOST_BYTES = 1_000_000
SUFFIXES = (".pb", ".pb.gz", ".log.gz", ".log", ".json.gz", ".json", ".pickle.gz", ".pbtxt", ".txt")
FOLDERS = (
    "chrome_trace", "fit", "graph_def", "hlo", "memory_log", "memory_waits", "oom_report",
    "op_stats", "pprof", "programs", "run_metadata", "sessions", "xla_dump", "xla_live_range",
)  # fmt: skip
_FETCHES = ("src", "srcset", "action", "background", "poster", "data", "ping")


def largest_of(folder, most):
    """Hundreds of small ones would take minutes."""
    files = [path for path in folder.rglob("*") if str(path).endswith(SUFFIXES)]
    return sorted(files, key=lambda path: (-path.stat().st_size, path))[:most]


@pytest.mark.parametrize("most", [2, pytest.param(8, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_report_is_small_and_fetches_nothing(root, folder, most):
    made = 0
    # That elements are closed and nested well is asserted where a `Document` is made.
    for path in largest_of(root / "tests" / "data" / folder, most):
        try:
            profile = peakline.open(str(path))
        except InputError:
            continue
        with profile:
            page = report_of(profile)
        source = page.source
        assert len(source.encode()) < MOST_BYTES, path
        assert "plotly" not in source.lower(), path
        assert "<script" not in source, path
        assert not any("://" in value or name in _FETCHES for name, value in attributes(page)), path
        for drawn in page.source.split("<svg")[1:]:
            assert "NaN" not in drawn.partition("</svg>")[0], path
        made += 1
    assert made


def attributes(page):
    """Names and values of all attributes, but for names of the profile that are shown."""
    shown = {"title", "aria-label", "value"}
    return [
        (name, value or "")
        for _, attrs, _ in page.elements
        for name, value in attrs.items()
        if name not in shown
    ]
