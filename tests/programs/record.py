"""Record every program with a known fault, and its healthy twin, and write down the truth.

    python tests/programs/record.py [NAME ...]

Needs TensorFlow 2.21 and JAX 0.10.2 (CPU). Each recording comes from a process of its own and
goes to ``tests/data/programs``; what the program itself says about its memory goes to
``tests/programs/truth.json``. With names, only those recordings are made anew.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "programs"
TRUTH = HERE / "truth.json"

FAULTS: dict[str, list[str]] = {
    "leak_list": ["leak_list.py"],
    "leak_late": ["leak_list.py", "--variant=late"],
    "leak_functions": ["leak_list.py", "--variant=functions"],
    "leak_eager": ["leak_list.py", "--variant=eager"],
    "leak_evaluation": ["leak_list.py", "--variant=evaluation"],
    "leak_slow": ["leak_slow.py"],
    "leak_growing": ["leak_growing.py"],
    "buffer_flushed": ["buffer_flushed.py"],
    "cache_fill": ["cache_fill.py"],
    "late_slot": ["late_slot.py"],
    "huge_temporary": ["huge_temporary.py"],
    "huge_temporary_once": ["huge_temporary.py", "--variant=once"],
    "fragmentation": ["fragmentation.py"],
    "doubled_batch": ["doubled_batch.py"],
    "jax_list": ["jax_list.py"],
}
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    # The BFC allocator under the CPU device: only then are there memory events.
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
    "TF_ENABLE_ONEDNN_OPTS": "0",
}
LIMITS_MB = {"fragmentation": 64}


def main(names: list[str]) -> None:
    """Record ``names``, or all."""
    everything = {"busy_pipeline": ["busy_pipeline.py"]}
    for name, command in FAULTS.items():
        everything[name] = command
        everything[f"{name}_healthy"] = [*command, "--healthy"]
    DATA.mkdir(exist_ok=True)
    truth = json.loads(TRUTH.read_text()) if names else {}
    for name in names or everything:
        fault = name.removesuffix("_healthy")
        is_jax = name.startswith("jax")
        file = f"{name}_{{}}.pprof.pb.gz" if is_jax else f"{name}.xplane.pb.gz"
        environment = os.environ | ENVIRONMENT
        facts: dict[str, Any] = {"command": everything[name]}
        if not is_jax:
            facts["file"] = file
        if fault in FAULTS:
            facts["twin"] = f"{name}_healthy" if fault == name else fault
        if fault in LIMITS_MB:
            environment["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(LIMITS_MB[fault])
            facts["limit_bytes"] = LIMITS_MB[fault] << 20
        script, *options = everything[name]
        said = subprocess.run(
            [sys.executable, HERE / script, f"--output={DATA / file}", *options],
            env=environment,
            cwd=HERE,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        truth[name] = facts | json.loads(said)
        sys.stdout.write(f"{name}\n")
    TRUTH.write_text(json.dumps(dict(sorted(truth.items())), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
