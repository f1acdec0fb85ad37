"""``peakline fit`` against TensorFlow: a program, recorded, and run at the limits of the answer."""

import json
import subprocess

import pytest

import peakline
from peakline.replay.requests import MIB
from tests.conformance.peer import PROGRAMS, peers_python
from tests.fit.record import WITHOUT_LIMIT

PROGRAM = "tile_cache"
"""It fits below limits at which it fails, and always allocates in the same order."""


def run(folder, *limits):
    done = subprocess.run(
        [peers_python(), str(PROGRAMS / "run_under_limits.py"), PROGRAM, str(folder),
         *map(str, limits)],
        check=False,
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    return {int(limit): outcome for limit, outcome in said.items()}


@pytest.mark.conformance
def test_a_program_runs_where_the_replay_of_its_recording_says(tmp_path):
    run(tmp_path, WITHOUT_LIMIT)
    with peakline.open(tmp_path / f"{WITHOUT_LIMIT}.xplane.pb") as profile:
        (fit,) = profile.fit()
        assert fit.exact, fit.reason
        (low, _), *_, (safe, _) = fit.limits.fits
        tried = sorted({low // MIB - 1, low // MIB, safe // MIB - 1, safe // MIB})
        predicted = profile.fit(limits=[limit * MIB for limit in tried])[0].under
    really = run(tmp_path, *tried)
    for one in predicted:
        outcome = really[one.limit_bytes // MIB]
        assert outcome["fits"] == one.fits
        if one.fits:
            assert outcome["peak_bytes"] == one.peak_bytes
        else:
            assert outcome["failing_bytes"] == one.fails_at.rounded_bytes
            assert outcome["allocations"] == one.fails_at.index
