"""Damaged bytes never crash, hang or lie; see `tests.wire.fuzzing` for what is checked.

`make soak` goes on with others.
"""

import random

import pytest
from tests.wire.fuzzing import Fuzzer
from tests.wire.mutations import mutate, sized_fields
from tests.wire.slices import read_sample, slice_of
from tests.wire.wirebytes import len_field, varint_field
from tests.wire.zoo import ZOO


@pytest.fixture(scope="module")
def fuzzer(sessions, tmp_path_factory):
    return Fuzzer(2026, sessions, tmp_path_factory.mktemp("mutants"))


def run(fuzzer: Fuzzer, numbers: range, *, reader: bool) -> None:
    for n in numbers:
        mutant = fuzzer.mutant(n, reader=reader)
        try:
            fuzzer.check(mutant)
        except Exception as error:
            raise AssertionError(f"mutant {n} of {mutant.describe()}") from error


@pytest.mark.parametrize(
    "numbers", [range(100), pytest.param(range(100, 500), marks=pytest.mark.nightly)]
)
def test_the_decoder_withstands_mutants(fuzzer, numbers):
    run(fuzzer, numbers, reader=False)


def test_the_readers_withstand_mutants(fuzzer):
    run(fuzzer, range(200), reader=True)


def test_rows_from_several_fields_are_compared_in_one_order(sessions, tmp_path):
    # Two rows that differ only in what hangs on them, found in another order than protobuf's.
    run(Fuzzer(91975, sessions, tmp_path), range(9022, 9023), reader=False)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_the_decoder_withstands_many_mutants(fuzzer, part):
    run(fuzzer, range(500 + part * 1200, 1700 + part * 1200), reader=False)


@pytest.mark.soak
def test_the_readers_withstand_many_mutants(fuzzer):
    run(fuzzer, range(200, 3000), reader=True)


def test_slices_of_real_files_keep_their_lines(sample):
    small = slice_of(read_sample(sample), 60)
    assert 3000 < len(small) < 60_000
    assert slice_of(small, 60) == small


def test_mutants_are_damaged_and_repeatable():
    data = len_field(ZOO.fields_by_name["leaf"].number, varint_field(1, 5)) * 20
    sized = sized_fields(data, ZOO)
    assert [end - start for _, start, end in sized] == [2] * 20
    mutants = [mutate(random.Random(n), data, sized) for n in range(200)]
    assert mutants == [mutate(random.Random(n), data, sized) for n in range(200)]
    assert sum(mutant != data for mutant in mutants) > 180
