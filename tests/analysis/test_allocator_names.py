"""What an allocator is called that the file names by a number."""

import pytest
from tests.analysis.records import alloc, events
from tests.profile.fake import FakeReader

from peakline.api import Profile
from peakline.findings.finding import Finding
from peakline.memory.allocator_names import recorded_name, shown_names


def profile(allocators, planes):
    rows = [alloc(1 + number, 8, allocator=name) for number, name in enumerate(allocators)]
    tables = {"allocator_events": events(rows)}
    if planes is not None:
        tables["planes"] = [{"plane_id": n, "name": name} for n, name in enumerate(planes)]
    return Profile(FakeReader(tables))


PLANES = ("/device:TPU:0", "/device:TPU:1", "/host:CPU", "/device:TPU:1 SparseCore 0")


@pytest.mark.parametrize(
    ("allocators", "planes", "names"),
    [
        (("0", "1", "2"), PLANES, {"0": "/device:TPU:0", "1": "/device:TPU:1"}),
        (("0", "1"), ("/device:TPU:0", "/device:GPU:0", "/device:GPU:1"), {"1": "/device:GPU:1"}),
        (("GPU_0_bfc", "cpu"), ("/device:GPU:0", "/device:TPU:0"), {}),
        (("0",), None, {}),
    ],
)
def test_the_device_is_that_of_the_index(allocators, planes, names):
    assert shown_names(profile(allocators, planes)) == names


def test_both_names_are_taken():
    opened = profile(("0", "1"), PLANES)
    for name in ("1", "TPU:1", "/device:TPU:1"):
        assert recorded_name(opened, name) == "1"
        (peak,) = opened.memory(allocator=name).allocators
        assert peak.allocator == "1"
    assert recorded_name(opened, "TPU:7") == "TPU:7"
    assert recorded_name(opened, None) is None
    assert recorded_name(profile(("GPU_0_bfc",), PLANES), "TPU:0") == "TPU:0"


def test_a_title_begins_with_the_name_that_is_shown():
    finding = Finding("leak", "warning", "1: 3 B more", {"allocator": "1"}, "")
    assert finding.title_with({"1": "TPU:1"}) == "TPU:1: 3 B more"
    assert finding.title_with({}) == "1: 3 B more"
    assert Finding("gap", "warning", "1 step", {}, "").title_with({"1": "TPU:1"}) == "1 step"
