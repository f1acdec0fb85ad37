"""Record every program that shows another way to mark its steps, or none.

    python tests/programs/record_steps.py [NAME ...]

As ``record.py`` does for memory: a process each, into ``tests/data/programs/steps``; what the
programs say of their steps goes to ``tests/programs/steps_truth.json``. Without names, all whose
runtime is installed are made: those of TensorFlow and JAX in one environment, those of PyTorch in
another.
"""

import importlib.metadata
import json
import os
import subprocess
import sys

from record import ENVIRONMENT, HERE

PROGRAMS = HERE / "steps"
DATA = HERE.parent / "data" / "programs" / "steps"
TRUTH = HERE / "steps_truth.json"
RUNTIMES = {"tf": "tensorflow", "jax": "jax", "torch": "torch"}
DEVICES = {"jax_pmap": 4}


def main(names: list[str]) -> None:
    """Record ``names``, or all that can be."""
    DATA.mkdir(parents=True, exist_ok=True)
    truth = json.loads(TRUTH.read_text()) if TRUTH.exists() else {}
    versions = {
        each.name.removesuffix("_cpu"): each.version for each in importlib.metadata.distributions()
    }
    for program in sorted(PROGRAMS.glob("*_*.py")):
        name = program.stem
        runtime = RUNTIMES.get(name.split("_")[0])
        if runtime not in versions or (names and name not in names):
            continue
        file = f"{name}.{'pt.trace.json' if runtime == 'torch' else 'xplane.pb'}.gz"
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(HERE)}
        if name in DEVICES:
            flag = f"--xla_force_host_platform_device_count={DEVICES[name]}"
            environment["XLA_FLAGS"] = flag
        said = subprocess.run(
            [sys.executable, program, f"--output={DATA / file}"],
            env=environment,
            cwd=HERE,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        made_with = f"{runtime} {versions[runtime]}"
        truth[name] = {"file": file, "made_with": made_with, **json.loads(said)}
        sys.stdout.write(f"{name}\n")
    TRUTH.write_text(json.dumps(dict(sorted(truth.items())), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
