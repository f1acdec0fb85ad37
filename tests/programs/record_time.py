"""Record every program with a known fault in its use of time, and its healthy twin.

    python tests/programs/record_time.py [NAME ...]

As ``record.py`` does for memory: a process each, into ``tests/data/programs/time``; what the
programs say of themselves goes to ``tests/programs/time_truth.json``.
"""

import json
import os
import subprocess
import sys

from record import ENVIRONMENT, HERE

DATA = HERE.parent / "data" / "programs" / "time"
TRUTH = HERE / "time_truth.json"
FAULTS = ("input_bound", "recompiling", "slow_step", "eager_loop")


def main(names: list[str]) -> None:
    """Record ``names``, or all."""
    DATA.mkdir(parents=True, exist_ok=True)
    truth = json.loads(TRUTH.read_text()) if names else {}
    for name in names or [each + twin for each in FAULTS for twin in ("", "_healthy")]:
        file = f"{name}.xplane.pb.gz"
        program = name.removesuffix("_healthy")
        options = ["--healthy"] if name != program else []
        said = subprocess.run(
            [sys.executable, HERE / f"{program}.py", f"--output={DATA / file}", *options],
            env=os.environ | ENVIRONMENT,
            cwd=HERE,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        truth[name] = {"file": file, **json.loads(said)}
        sys.stdout.write(f"{name}\n")
    TRUTH.write_text(json.dumps(dict(sorted(truth.items())), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
