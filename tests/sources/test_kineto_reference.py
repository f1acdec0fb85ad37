"""PyTorch's traces against the plain reader: samples, recordings, and odd traces.

``PEAKLINE_SAMPLES`` names folders with more traces (``.json``, ``.json.gz``) to be compared; what
is not PyTorch's is left out.
"""

import gzip
import os
from pathlib import Path

import pytest
from tests.programs.known_steps import KINETO
from tests.programs.known_steps import path as recording
from tests.shared import DATA
from tests.sources.kineto_answers import QUESTIONS, by_peakline, plainly
from tests.sweeps import sweep

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


def differences(path, trace):
    """Both answers, of the questions that are not answered alike."""
    with peakline.open(path) as profile:
        ours = by_peakline(profile)
    plain = plainly(trace)
    return {name: (ours[name], plain[name]) for name in QUESTIONS if ours[name] != plain[name]}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name):
    assert differences(SAMPLES[name], Trace.of(SAMPLES[name])) == {}


@pytest.mark.parametrize("part", sweep(range(PARTS), (0).__eq__))
def test_odd_traces(part, tmp_path):
    for seed in range(part, SEEDS, PARTS):
        made = odd_trace(seed)
        path = tmp_path / f"{seed}.json"
        path.write_text(made.text)
        assert differences(path, Trace(made.text)) == {}, f"seed {seed}: {made.oddities}"
