"""The recorded data agree with each other and with the sequences they are made of."""

import pytest
from tests.fit.torch import truth
from tests.fit.torch.record import AMPLE_MIB, digest
from tests.fit.torch.sequences import most_live, sequences, to_text

SEQUENCES = sequences()


def test_every_sequence_is_recorded():
    assert sorted(SEQUENCES) == truth.names()


def test_the_files_are_small():
    files = [*truth.DATA.rglob("*.gz"), *truth.TRUTH.rglob("*.gz")]
    assert sum(path.stat().st_size for path in files) < 2_000_000


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_requests_are_those_of_the_sequence(name):
    assert truth.requests_text(name) == to_text(SEQUENCES[name])
    assert truth.requests(name) == SEQUENCES[name]
    assert truth.truth(name)["most_live"] == most_live(SEQUENCES[name])


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_listed_addresses_have_the_digest_of_their_run(name):
    of = {
        (one.settings, one.fraction, one.placement, one.capacity_mib): one.digest
        for one in truth.outcomes(name)
    }
    for one in truth.listed(name):
        run = (one.settings, one.fraction, one.placement, one.capacity_mib)
        assert digest(one.addresses) == of[run]


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_snapshot_has_the_addresses_of_the_run(name):
    addresses = next(
        one.addresses
        for one in truth.listed(name)
        if (one.settings, one.capacity_mib) == ("", AMPLE_MIB)
    )
    for which in ("start", "middle"):
        trace = truth.snapshot(name, which)["device_traces"][0]
        allocated = [entry["addr"] for entry in trace if entry["action"] == "alloc"]
        assert allocated == addresses[len(addresses) - len(allocated) :]
        assert which == "middle" or len(allocated) == len(addresses)


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_smaller_capacity_than_the_smallest_fails(name):
    for run in truth.truth(name)["runs"]:
        for capacity, failed, *_ in run["rows"]:
            assert failed >= 0 or capacity >= run["smallest"]
            assert failed < 0 or capacity < run["safe_from"]
