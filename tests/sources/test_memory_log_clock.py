import numpy as np
from tests.each_row import each_row

from peakline.formats.memory_log.tables import read_clock

EPOCH = 1_795_000_000_000_000_000
DAY = 86_400_000_000_000


def clock(*times):
    return read_clock(np.array(times, np.int64))


def test_zero_is_the_first_record():
    assert clock(EPOCH, EPOCH + 7).time_ps.tolist() == [0, 7000]


def test_time_never_goes_backwards():
    found = clock(EPOCH + 5, EPOCH, EPOCH + 9, EPOCH + 8)
    assert found.time_ps.tolist() == [0, 0, 4000, 4000]
    assert found.behind == 2


def test_a_record_without_a_time_has_that_of_the_one_before():
    found = clock(0, EPOCH, 0, EPOCH + 1, 0)
    assert found.time_ps.tolist() == [0, 0, 0, 1000, 1000]
    assert (found.missing, found.behind) == (3, 0)


def test_without_any_time_the_number_of_the_record_stands_for_it():
    found = clock(0, 0, 0)
    assert found.time_ps.tolist() == [0, 1, 2]
    assert found.numbered
    assert found.missing == 3


def test_a_time_too_far_from_the_first():
    found = clock(EPOCH, EPOCH + 200 * DAY)
    assert found.time_ps.tolist() == [0, (2**63 - 1) // 1000 * 1000]
    assert found.far == 1


@each_row("turn", [DAY, 366 * DAY])
def test_a_clock_without_date_or_year_goes_on(turn):
    # The third was logged by a thread that was late.
    found = clock(turn - 5, 3, turn - 1, 4)
    assert found.time_ps.tolist() == [0, 8000, 8000, 9000]
    assert found.behind == 1


def test_a_log_that_changes_to_times_without_a_year():
    year_less = 300 * DAY
    found = clock(EPOCH, EPOCH + 5, year_less, year_less + 2, EPOCH + 8, year_less + 4)
    assert found.time_ps.tolist() == [0, 5000, 5000, 7000, 8000, 9000]
    assert found.behind == 0


def test_no_records():
    assert read_clock(np.zeros(0, np.int8)).time_ps.tolist() == []
