"""The pages of frameworks: their programs are run, and their commands on what these wrote.

TensorFlow and JAX are the peers'. PEAKLINE_TORCH_PYTHON names an interpreter with PyTorch (and
Lightning, Flax and Optax, whose pages are skipped where it lacks them).
"""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.peer import peers_python

pytestmark = pytest.mark.conformance

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<kind>python|sh)\n(?P<text>.*?)```", re.DOTALL
)
ELSEWHERE = ("not run: ", "run by tests/conformance/test_capture_peers.py")


def blocks(page):
    """The programs and commands of a page that are run here, in order."""
    for match in BLOCK.finditer((ROOT / "docs" / page).read_text(encoding="utf-8")):
        if not (match["note"] or "").startswith(ELSEWHERE):
            yield match["kind"], match["text"]


def environment(folder, **variables):
    known = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "XLA", "TF_"))}
    return {**known, "PATH": f"{folder}{os.pathsep}{known['PATH']}", **variables}


@pytest.fixture
def follow(tmp_path):
    """Do what a page says: programs with the named interpreter, commands with ours."""
    programs, job = tmp_path / "bin", tmp_path / "job"
    programs.mkdir()
    job.mkdir()
    verb = programs / "peakline"
    ours = os.environ.get("PYTHONPATH", "")
    verb.write_text(f'#!/bin/sh\nPYTHONPATH="{ours}" exec "{sys.executable}" -m peakline "$@"\n')
    verb.chmod(0o755)

    def run(page, python, **variables):
        printed = []
        for number, (kind, text) in enumerate(blocks(page)):
            program = job / f"program{number}.py"
            program.write_text(text, encoding="utf-8")
            command = [python, program] if kind == "python" else ["bash", "-euc", text]
            done = subprocess.run(
                command, cwd=job, env=environment(programs, **variables), capture_output=True,
                text=True, timeout=600, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{page}: {text}{done.stdout[-2000:]}{done.stderr[-2000:]}"
            if kind == "sh":
                printed.append(done.stdout)
        return printed

    run.job = job
    return run


def torch_python(*modules):
    python = os.environ.get("PEAKLINE_TORCH_PYTHON") or peers_python()
    names = ", ".join(modules)
    if subprocess.run(
        [python, "-c", f"import {names}"], capture_output=True, check=False
    ).returncode:
        pytest.skip(f"{python} lacks one of {names}")
    return python


@pytest.mark.parametrize("page", ["record/tensorflow.md", "record/keras.md"])
def test_tensorflow_and_keras_have_memory_and_steps(page, follow):
    (summary,) = follow(page, peers_python())
    assert re.search(r"^memory +bfc_cpu_allocator_for_gpu +peak ", summary, re.MULTILINE)
    assert re.search(r"^time +\d+ steps ", summary, re.MULTILINE)


def test_jax_has_steps_a_heap_and_programs(follow):
    profile, heap, dump, function = follow(
        "record/jax.md", peers_python(), XLA_FLAGS="--xla_dump_to=dump"
    )
    assert re.search(r"^time +8 steps ", profile, re.MULTILINE)
    assert "in use 1.0 MiB" in heap
    assert "jit_train" in dump
    assert "flops" in function


def test_flax_has_its_modules(follow):
    (ops,) = follow("record/flax.md", torch_python("flax", "optax"))
    assert "dot_general" in ops


def test_pytorch_has_memory_and_steps(follow):
    of_a_gpu = ROOT / "tests/data/fit/torch/limited/snapshot_oom.pickle.gz"
    (follow.job / "snapshot.pickle").write_bytes(gzip.decompress(of_a_gpu.read_bytes()))
    summary, snapshot = follow("record/pytorch.md", torch_python("torch"))
    assert "ran out of memory" in snapshot
    assert re.search(r"^memory +CPU +peak ", summary, re.MULTILINE)
    assert re.search(r"^time +6 steps ", summary, re.MULTILINE)


def test_lightning_has_memory_and_steps(follow):
    (summary,) = follow("record/lightning.md", torch_python("lightning"))
    assert re.search(r"^memory +CPU +peak ", summary, re.MULTILINE)
    assert re.search(r"^time +\d+ steps ", summary, re.MULTILINE)
