"""Reports of the largest files of every folder of tests/data: small, whole, without a script."""

import pytest
from tests.report.document import report_of

import peakline
from peakline.errors import InputError

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
