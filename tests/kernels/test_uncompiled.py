"""The kernels' source and what the compiler made of it answer the same, for whole files of every
format and for damaged ones.
"""

import os
import subprocess
import sys
from pathlib import Path
from random import Random, getrandbits

import numpy as np
import pytest
from tests.formats.format_damage import damaged
from tests.formats.format_samples import samples

from kernels import uncompiled
from peakline.kernels import nesting

_DATA = Path(__file__).parent.parent / "data"
_ANSWERS = Path(__file__).with_name("answers.py")


SMALL = {
    "steps.pb", "graph.pb", "graph.json", "records.pb", "space.pb", "texts.log",
    "snapshot4.pickle", "tiny_trace.json",
}  # fmt: skip
"""Of every reader a file that Python reads in a second, without compiled kernels."""


def write_files(folder, seed, mutants, chosen=lambda _name: True):
    folder.mkdir()
    for sample in filter(lambda one: chosen(one.name), samples(_DATA)):
        (folder / sample.name).write_bytes(sample.file)
        for number in range(mutants):
            rng = Random(f"{seed} {sample.name} {number}")
            (folder / f"{number}-{sample.name}").write_bytes(damaged(rng, sample))


def answers(folder, *words):
    """What every file answers, by its name."""
    done = subprocess.run(
        [sys.executable, "-W", "error", _ANSWERS, folder, *words],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(line.split() for line in done.stdout.splitlines())


def both_answer_the_same(folder):
    compiled = answers(folder)
    plain = answers(folder, "--uncompiled")
    assert len(compiled) == len(list(folder.iterdir()))
    assert [name for name in compiled if compiled[name] != plain[name]] == []


def test_the_kernels_are_compiled_against_the_stable_abi():
    assert Path(nesting.__file__).name.startswith("nesting.abi3.") or os.name == "nt"


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(SMALL.__contains__, id="small files", marks=pytest.mark.nightly),
        pytest.param(lambda _name: True, id="all formats", marks=pytest.mark.nightly),
    ],
)
def test_compiled_and_uncompiled_kernels_answer_the_same(tmp_path, chosen):
    write_files(tmp_path / "files", seed=1, mutants=1, chosen=chosen)
    both_answer_the_same(tmp_path / "files")


@pytest.mark.soak
def test_compiled_and_uncompiled_kernels_answer_the_same_for_many_mutants(tmp_path):
    seed = getrandbits(32)
    write_files(tmp_path / str(seed), seed, mutants=200)
    both_answer_the_same(tmp_path / str(seed))


def test_uncompiled_code_refuses_what_would_be_outside_of_an_array():
    view = uncompiled.View(np.zeros(3, np.uint8))
    for at in (-1, 3):
        with pytest.raises(IndexError):
            view[at]
    with pytest.raises(ValueError, match="value"):
        view[0] = 256
