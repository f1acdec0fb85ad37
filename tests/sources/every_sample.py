"""A sample of every format in every form, made once in a process."""

from pathlib import Path

from tests.each_row import each_row
from tests.sources.format_samples import samples

ALL = samples(Path(__file__).parent.parent / "data")
BY_NAME = {sample.name: sample for sample in ALL}
ONE_OF_EACH = {sample.format: sample for sample in reversed(ALL)}


def every(found):
    return each_row("made", found)
