"""What the worst files known take, whatever is asked about them: a bounded share, and no more than
2.3 times as much for twice the bytes.
"""

import pytest
from tests.amplification.matrix import Measuring, cases, measured
from tests.amplification.questions import questions

LIMITS = {10_000: (200_000_000, 2.0), 100_000: (300_000_000, 5.0), 1_000_000: (900_000_000, 20.0)}
"""By the size of a file: bytes beyond those of the imports (100 MB), and seconds of CPU."""
FAILED = {
    "graph_def.deep_scope": ["tool op_stats", "graph"],
    "graph_def.doubling_functions": ["tool op_stats"],
    "xplane.empty_planes": ["summary", "tool overview_page"],
    "pprof.texts": ["memory"],
    "hlo_proto.doubling_calls": ["programs"],
}
"""Some that took more than their share, and questions that showed it."""


def beyond(took):
    """What of it is too much."""
    most, seconds = LIMITS[took.size]
    return took.bytes > most or took.seconds > seconds or took.code not in range(4)


def test_some_of_the_worst_files_take_their_share():
    with Measuring() as measuring:
        for case, starts in FAILED.items():
            asked = [q for q in questions() if " ".join(q).startswith(tuple(starts))]
            assert [
                took for took in measured(measuring, [case], 100_000, asked) if beyond(took)
            ] == []


@pytest.mark.soak
@pytest.mark.parametrize("case", cases())
def test_every_one_takes_its_share(case):
    with Measuring() as measuring:
        for size in LIMITS:
            found = measured(measuring, [case], size, list(questions()))
            assert [took for took in found if beyond(took)] == []
