"""Several profiles in order of time: what grows over all of them."""

from tests.analysis.records import alloc, free
from tests.analysis.stacks import profile_with
from tests.each_row import each_row

from peakline.compare.comparison import profile_state
from peakline.compare.series import series_of

KIB = 1024


def states(*moments):
    """Profiles that hold so many KiB of each op."""
    return [
        profile_state(
            profile_with(
                [alloc(n, size * KIB, op=op) for n, (op, size) in enumerate(held.items()) if size]
                + [alloc(99, 1), free(99)]
            )
        )
        for held in moments
    ]


def growing(*sizes):
    found = series_of(states(*({"history": size, "weights": 100} for size in sizes)))
    return [(one.kind.op, tuple(size // KIB for size in one.bytes)) for one in found.growing]


def test_what_grows_is_a_leak():
    found = series_of(states(*({"history": 10 * n, "other": 5 * n, "w": 100} for n in range(1, 5))))
    assert [one.kind.op for one in found.growing] == ["history", "other"]
    assert found.growing[0].counts == (1, 1, 1, 1)
    assert (found.growing[0].risen, found.growing[0].per_profile) == (30 * KIB, 10 * KIB)
    (finding,) = found.findings
    assert (finding.kind, finding.severity) == ("leak", "warning")
    assert "10.0 KiB more live in each of 4 profiles: history and 1 more" in finding.title
    document = found.as_json()
    assert document["growing"][0]["bytes"] == [10 * KIB, 20 * KIB, 30 * KIB, 40 * KIB]
    assert document["findings"] == [finding.as_json()]
    assert document["paths"] == ["fake.pb"] * 4


@each_row(
    ("sizes", "grows"),
    [
        ((1, 5, 9), True),
        ((0, 5, 9), True),
        ((1, 5, 5, 9, 13), True),
        ((9, 9, 9), False),
        ((9, 5, 1), False),
        ((5, 9, 13, 9, 5), False),
        ((5, 1, 9, 13, 17), False),
        ((1, 1, 1, 1, 9), False),
        # A trifle of what is in use.
        ((1, 1.5, 2), False),
    ],
)
def test_what_rises_in_most_profiles_grows(sizes, grows):
    whole = tuple(int(size) for size in sizes)
    assert growing(*sizes) == ([("history", whole)] if grows else [])


def test_two_profiles_show_no_direction():
    assert growing(1, 9) == []


def test_allocators_are_those_that_all_have():
    rows = [alloc(1, 8, allocator="a"), alloc(2, 8, allocator="b")]
    first, second = (profile_state(profile_with(some)) for some in (rows, rows[:1]))
    assert list(series_of([first, second, second]).peaks) == ["a"]
