"""PyTorch's traces against the plain reader: samples, recordings, and odd traces.

What the two still disagree about is listed, with the reason, and must go on to disagree: whoever
mends the one or the other takes it out of the list. ``PEAKLINE_SAMPLES`` names folders with more
traces (``.json``, ``.json.gz``) to be compared; what is not PyTorch's is left out.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from tests.programs.known_steps import KINETO
from tests.programs.known_steps import path as recording
from tests.shared import DATA
from tests.sources.kineto_answers import QUESTIONS, by_peakline, plainly

import peakline
from reference.kineto import Trace
from reference.odd_traces import odd_trace


def is_of_pytorch(file: Path) -> bool:
    content = file.read_bytes()
    content = gzip.decompress(content) if file.suffix == ".gz" else content
    return b'"cpu_op"' in content or b'"Operator"' in content


FOLDERS = [Path(text) for text in os.environ.get("PEAKLINE_SAMPLES", "").split(":") if text]
MORE = [
    file for folder in FOLDERS for end in ("json", "json.gz") for file in folder.rglob(f"*.{end}")
]
SAMPLES = {
    "noleak": DATA / "chrome_trace" / "noleak.pt.trace.json.gz",
    **{name: recording(name) for name in KINETO},
    **{str(file): file for file in sorted(MORE) if is_of_pytorch(file)},
}
SEEDS, PARTS = 48, 4
# Annotations by hand, without `ProfilerStep#N`, are no steps yet.
WRONG_SAMPLES = {"torch_by_hand": {"steps"}, "torch_train_eval": {"steps"}}
# A device is decided by its pid and by metadata, not by category and arguments: so devices and what
# they did are wrong.
_DEVICES = "1 3 4 7 8 9 10 12 13 14 15 16 18 20 21 24 25 27 28 29 30 32 34 35 37 38 40 44 45 46"
WRONG_SEEDS = {
    "devices": _DEVICES,
    "communication": _DEVICES,
    "copies": _DEVICES,
    # The same, and kernels of MTIA, HPU and of categories that nobody knows.
    "kernels": "1 2 3 5 6 7 8 10 14 16 20 21 23 24 25 29 30 33 34 38 39 45 46",
    # The process of the host is taken for a device.
    "ops": "9 20 34 38 40",
    # As in the samples.
    "steps": "28 32",
}


def differences(path, trace):
    """Both answers, of the questions that are not answered alike."""
    with peakline.open(path) as profile:
        ours = by_peakline(profile)
    plain = plainly(trace)
    return {name: (ours[name], plain[name]) for name in QUESTIONS if ours[name] != plain[name]}


def check(found, known, what):
    """What differs is what is known to; a new difference is shown, and so is one that is gone."""
    gone = set(known) - set(found)
    assert not gone, f"{what}: {sorted(gone)} agree now, take them out of the list"
    for name in found.keys() - set(known):
        ours, plain = found[name]
        assert ours == plain, f"{what}: {name}"


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name):
    found = differences(SAMPLES[name], Trace.of(SAMPLES[name]))
    check(found, WRONG_SAMPLES.get(name, ()), name)


@pytest.mark.parametrize("part", range(PARTS))
def test_odd_traces(part, tmp_path):
    for seed in range(part, SEEDS, PARTS):
        made = odd_trace(seed)
        path = tmp_path / f"{seed}.json"
        path.write_text(made.text)
        known = [name for name, seeds in WRONG_SEEDS.items() if str(seed) in seeds.split()]
        check(differences(path, Trace(made.text)), known, f"seed {seed}: {made.oddities}")
