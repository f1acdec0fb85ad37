from tests.analysis.kinds import found_by
from tests.analysis.records import alloc, events
from tests.each_row import each_row

from peakline.findings.finding import Finding
from peakline.findings.kinds import accounting, fragmentation_at_peak, near_capacity
from peakline.memory.peak.explained import find_peaks


def findings(*rows):
    (peak,) = find_peaks(events(rows))
    return found_by(accounting, near_capacity, fragmentation_at_peak, peak=peak)


def at_peak(in_use, free, fragmentation=None):
    return alloc(1, in_use, in_use_bytes=in_use, free_bytes=free, fragmentation=fragmentation)


def test_a_healthy_profile_has_none():
    assert findings(at_peak(400, 600, 0.1)) == []
    assert findings(alloc(1, 10)) == []


@each_row(("in_use", "kinds"), [(949, []), (950, ["near_capacity"])])
def test_a_peak_near_the_capacity(in_use, kinds):
    assert [finding.kind for finding in findings(at_peak(in_use, 1000 - in_use))] == kinds


def test_near_capacity_carries_its_numbers():
    (finding,) = findings(at_peak(960, 40))
    assert finding.evidence == {
        "allocator": "",
        "peak_bytes": 960,
        "capacity_bytes": 1000,
        "share": 0.96,
    }
    assert "96.0%" in finding.title


@each_row(
    ("in_use", "fragmentation", "found"),
    [
        (500, 0.5, True),
        (500, 0.49, False),
        (499, 0.9, False),  # the pool can still grow
        (951, 0.9, False),  # hardly anything is free
        (950, 0.9, True),
    ],
)
def test_fragmentation_where_it_locks_memory_up(in_use, fragmentation, found):
    kinds = [f.kind for f in findings(at_peak(in_use, 1000 - in_use, fragmentation))]
    assert ("fragmentation_at_peak" in kinds) is found


def test_a_negative_rest_is_an_accounting_finding():
    (finding,) = findings(alloc(1, 100, in_use_bytes=100), alloc(2, 100, in_use_bytes=130))
    assert finding.kind == "accounting"
    assert finding.evidence["unattributed_bytes"] == -70


def test_json_shape():
    assert Finding("kind", "info", "title", {"n": 1}, "do").as_json() == {
        "kind": "kind",
        "severity": "info",
        "title": "title",
        "evidence": {"n": 1},
        "suggestion": "do",
    }
