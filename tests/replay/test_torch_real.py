"""Our model of PyTorch's caching allocator against what the real one did."""

import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.replay.real_sequences import Sequence

from peakline.replay.torch_caching import CachingMachine
from peakline.replay.torch_settings import MIB, CachingSettings

FOLDER = Path(__file__).parents[1] / "fit" / "torch" / "truth_of"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/truth.json.gz"))
PLACEMENTS = {"lowest": "lowest", "rising": "ascending", "falling": "descending"}


@cache
def sequence_of(name):
    return Sequence(FOLDER / name / "requests.txt.gz")


def content(name, file):
    return json.loads(gzip.decompress((FOLDER / name / file).read_bytes()))


def replayed(name, run, capacity_mib):
    sequence = sequence_of(name)
    chosen = CachingSettings.parse(run["settings"])
    if run["fraction"]:
        chosen = replace(chosen, memory_fraction=run["fraction"])
    machine = CachingMachine(
        sequence.events,
        chosen,
        capacity_mib * MIB,
        placement=PLACEMENTS[run["placement"]],
        are_pools_captured=False,
    )
    for place, fraction in sequence.fractions:
        machine.advance(place)
        machine.set_memory_fraction(fraction)
    machine.advance()
    return machine


def outcome(name, machine):
    failed = -1 if machine.failed < 0 else int(sequence_of(name).request[machine.failed])
    return [failed, machine.peak_in_use, machine.peak_reserved, machine.taken, machine.returned]


def differing(name, every):
    found = []
    for run in content(name, "truth.json.gz")["runs"]:
        for capacity, *recorded in run["rows"][::every]:
            made = outcome(name, replayed(name, run, capacity))
            if made != recorded[:5]:
                found.append((run["settings"], run["placement"], capacity, made, recorded[:5]))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_it_fails_where_the_real_one_fails_and_takes_as_much(name):
    assert differing(name, 12) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_so_it_does_under_every_recorded_capacity(name):
    assert differing(name, 1) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_address_is_the_real_ones(name):
    for run in content(name, "addresses.json.gz"):
        real = np.cumsum(np.array(run["addresses"], np.int64)) * 512
        machine = replayed(name, run, run["capacity_mib"])
        # The fake device begins at an address of its own.
        assert np.unique(real - machine.address[: real.size]).size == 1, run["settings"]


def test_a_fraction_that_changes_keeps_the_slack():
    run = {"settings": "", "fraction": 0.9, "placement": "lowest"}
    machine = replayed("limited", run, 500)
    assert machine.failed < 0
    assert 0 <= machine.slack <= 500 * MIB
