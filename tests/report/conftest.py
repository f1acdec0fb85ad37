"""Reports of samples, each made once."""

from functools import cache

import pytest
from tests.jobs.answering import answer_in
from tests.memory.records import events
from tests.report.document import job_report_of, report_of
from tests.tables.fake import FakeReader

import peakline
from peakline.api import Profile
from peakline.tables.derived import DERIVED


@pytest.fixture(scope="session")
def read(root):
    """The report of a file under tests/data, and the profile it is about; of a job, and its
    answer.
    """

    @cache
    def make(name):
        if name.startswith("jobs/"):
            answer = answer_in(root / "tests" / "data" / name)
            return job_report_of(answer, name), answer
        profile = peakline.open(str(root / "tests" / "data" / name))
        return report_of(profile), profile

    return make


@pytest.fixture
def made():
    """The report of a profile with these allocator records and steps."""

    def make(rows, steps=None, losses=None, **options):
        tables = {"allocator_events": events(rows)}
        if steps is not None:
            tables["steps"] = steps
        return report_of(Profile(FakeReader(tables, losses=losses), derived=DERIVED), **options)

    return make
