"""Whether a finding that two profiles share has become worse."""

from tests.each_row import each_row

from peakline.findings.finding import Finding
from peakline.findings.ranking import is_worse


def finding(kind, severity="warning", **evidence):
    return Finding(kind, severity, "it is so", evidence, "do it")


@each_row(
    ("kind", "name", "before", "after", "worse"),
    [
        ("leak", "bytes_per_step", 100, 126, False),
        ("huge_temporary", "saved_bytes", 100, 126, True),
        ("huge_temporary", "saved_bytes", 100, 125, False),
        ("huge_temporary", "saved_bytes", 126, 100, False),
        ("huge_temporary", "saved_bytes", None, 100, False),
        ("python_work", "gain_share", 0.20, 0.30, True),
        # Half as much again, and little of the time.
        ("python_work", "gain_share", 0.02, 0.06, False),
        ("python_work", "gain_share", 0.30, 0.36, False),
        ("no_such_kind", "saved_bytes", 1, 100, False),
    ],
)
def test_it_says_that_more_would_go(kind, name, before, after, worse):
    assert is_worse(finding(kind, **{name: before}), finding(kind, **{name: after})) == worse


def test_a_graver_one_is_worse_and_a_lighter_one_is_not():
    info, warning = finding("python_work", "info"), finding("python_work")
    assert is_worse(info, warning)
    assert not is_worse(warning, info)
    assert not is_worse(warning, warning)
