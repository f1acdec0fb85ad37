"""The parts of the summary are what the whole says, however they are worked out."""

import json

import pytest
from tests.web.samples import SAMPLES

import peakline

PARTS = ("facts", "memory", "time", "findings")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_parts_are_the_whole(name):
    path = str(SAMPLES[name][0])
    with peakline.open(path) as profile:
        whole = json.loads(profile.tool("summary").content)
    with peakline.open(path) as profile:
        parts = {}
        for part in PARTS:
            parts |= json.loads(profile.tool("summary", part=part).content)
    assert parts == whole
