"""What PyTorch's allocator did under other settings and capacities, against the replay of what it
recorded under its defaults.
"""

from dataclasses import replace

from tests.each_row import each_row
from tests.fit.torch import truth
from tests.sweeps import each_sample

import peakline
from peakline.memory.fit.answer import replayed_of
from peakline.memory.signatures import read_history
from peakline.replay.requests import MIB
from peakline.replay.torch_settings import CachingSettings

UNKNOWN = {
    "graph_pool": "when a CUDA graph is captured is not in a snapshot",
    "two_pools": "when private pools are left is not in a snapshot",
    "limited": "what the program sets its memory fraction to is not in a snapshot",
}
IN_EVERY_RUN = {"edge_sizes", "small_tensors", "three_streams"}
EVERY = 9
"""Of so many runs one is compared; each sequence has hundreds."""


def replayed(name):
    with peakline.open(truth.DATA / name / "snapshot_start.pickle.gz") as profile:
        return replayed_of(profile, read_history(profile.columns("allocator_events")), 0)


@each_sample(
    "name", [name for name in truth.names() if name not in UNKNOWN], IN_EVERY_RUN.__contains__
)
def test_it_fits_where_it_really_did(name):
    replay = replayed(name)
    assert replay.stated.proved, replay.stated.reason
    assert replay.recording.is_whole
    compared = decided = right = 0
    for run in truth.outcomes(name)[::EVERY]:
        settings = CachingSettings.parse(run.settings)
        if run.fraction:
            settings = replace(settings, memory_fraction=run.fraction)
        result = replay.fits(run.capacity_mib * MIB, settings)
        compared += 1
        decided += result is not None
        right += result is not None and result == (run.failed < 0)
    assert compared > 30
    assert decided >= 0.95 * compared
    assert right >= 0.99 * decided


@each_row("name", [name for name in UNKNOWN if name != "limited"])
def test_private_pools_make_it_a_bound(name):
    replay = replayed(name)
    assert replay.uncertain() or not replay.stated.proved


def test_what_happened_before_the_history_makes_it_a_bound():
    with peakline.open(truth.DATA / "epochs" / "snapshot_middle.pickle.gz") as profile:
        (fit,) = profile.fit()
    assert fit.proof.proved
    assert not fit.exact
    assert "begins after the first allocation" in fit.reason
