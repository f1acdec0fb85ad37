"""PyTorch's traces against the plain reader: samples, recordings, and odd traces.

``PEAKLINE_SAMPLES`` names folders with more traces (``.json``, ``.json.gz``) to be compared; what
is not PyTorch's is left out.
"""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from tests.programs.known_steps import KINETO
from tests.programs.known_steps import path as recording
from tests.shared import DATA
from tests.sweeps import sweep

import peakline
from reference.kineto import Trace
from reference.odd_traces import odd_trace

QUESTIONS = ("devices", "communication", "copies", "kernels", "ops", "steps")
_OPS = (
    "select op, occurrences, total_ps, self_ps from op_stats where side = 'host' and op <> 'IDLE'"
)
_KERNELS = """
    select kernel, sum(occurrences)::bigint as runs, sum(total_ps)::bigint as total_ps
    from kernels group by 1
"""


def by_peakline(profile: peakline.Profile) -> dict[str, Any]:
    """The answers of the tables; times count from the profile's begin.

    Devices are compared by when they worked: what a device is called is another question.
    """

    def rows(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in profile.sql(query).to_pylist()]

    return {
        "devices": sorted(rows("select start_ps, end_ps, busy_ps, idle_ps from device_time")),
        "communication": sorted(rows("select busy_ps, communication_ps from device_time")),
        "copies": sorted(rows("select busy_ps, copy_ps from device_time")),
        "kernels": {name: tuple(rest) for name, *rest in rows(_KERNELS)},
        "ops": {name: tuple(rest) for name, *rest in rows(_OPS)},
        # The plain reader does not count marks without a number.
        "steps": sorted(
            rows(
                "select case found_by when 'annotation' then regexp_replace(name, ' [0-9]+$', '') "
                "else name end, start_ps, end_ps from steps"
            )
        ),
    }


def plainly(trace: Trace) -> dict[str, Any]:
    """The same, by the plain reader."""
    zero = trace.first_ps
    devices = list(trace.devices().values())
    return {
        "devices": sorted(
            (work.start_ps - zero, work.end_ps - zero, work.busy_ps, work.idle_ps)
            for work in devices
        ),
        "communication": sorted((work.busy_ps, work.communication_ps) for work in devices),
        "copies": sorted((work.busy_ps, work.copy_ps) for work in devices),
        "kernels": trace.kernels(),
        "ops": trace.ops(),
        "steps": sorted(
            (step.shown, step.start_ps - zero, step.end_ps - zero) for step in trace.steps()
        ),
    }


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
