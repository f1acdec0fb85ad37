"""Runs a program of ``tests/fit`` under limits: ``run_under_limits.py NAME FOLDER MIB...``.

Writes the reduced profile of each that fits to ``FOLDER/MIB.xplane.pb``, and prints as JSON what
each run said.
"""

import importlib
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    """One line of JSON, by limit."""
    sys.path.insert(0, str(ROOT))
    from tests.fit import record

    if any(os.environ.get(key) != value for key, value in record.ENVIRONMENT.items()):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **record.ENVIRONMENT})  # noqa: S606
    importlib.import_module("tests.fit.programs._profiled")
    name, folder, *limits = sys.argv[1:]
    result = {}
    for limit in map(int, limits):
        made = record.run(name, limit)
        result[limit] = made.outcome()
        if made.fits:
            target = Path(folder) / f"{limit}.xplane.pb"
            target.write_bytes(made.space.SerializeToString(deterministic=True))
    sys.stdout.write(json.dumps(result) + "\n")


main()
