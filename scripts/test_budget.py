"""Compare what tests took with tests/budget.toml: ``test_budget.py build/tests.xml``.

A folder that took more than twice its processor seconds ends it with exit code 1,
its name and its slowest tests; so does one without a budget, or budgets that are more in all than
``make test`` may take. Processor seconds (tests/processor.py) are about the same on a busy machine,
where wall time is not.
"""

from __future__ import annotations

import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
MOST = 720.0
"""Processor seconds of ``make test`` in all: six minutes on two cores."""
TOLERANCE = 2.0
"""What runs beside the tests, and threads that wait for each other, make up to a half more."""
SHOWN = 5

Times = dict[str, list[tuple[float, str]]]


def times_of(path: Path) -> Times:
    """Seconds and name of every test, by its folder; ``.`` has the files beside the folders."""
    times: Times = defaultdict(list)
    for case in ET.parse(path).iter("testcase"):  # noqa: S314 (we wrote it ourselves)
        module = case.get("classname", "").split(".")
        folder = "." if module[1].startswith("test_") else module[1]
        seconds = [
            float(one.get("value", 0))
            for one in case.iter("property")
            if one.get("name") == "processor_seconds"
        ]
        times[folder].append((sum(seconds), f"{'.'.join(module[1:])}::{case.get('name')}"))
    return times


def complaints(times: Times, budget: dict[str, float]) -> list[str]:
    """What is over its budget, in words."""
    result = []
    if sum(budget.values()) > MOST:
        result.append(
            f"the budgets are {sum(budget.values()):.0f} s in all, more than {MOST:.0f} s"
        )
    for folder, tests in sorted(times.items()):
        spent = sum(seconds for seconds, _ in tests)
        if folder not in budget:
            result.append(f"tests/{folder} took {spent:.0f} s and has no budget")
        elif spent > TOLERANCE * budget[folder]:
            result.append(f"tests/{folder} took {spent:.0f} s, its budget is {budget[folder]:g} s:")
            slowest = sorted(tests, reverse=True)[:SHOWN]
            result += [f"  {seconds:.1f} s  {name}" for seconds, name in slowest]
    return result


def main() -> int:
    """Print the seconds of every folder, then what is too much."""
    times = times_of(Path(sys.argv[1]))
    budget = tomllib.loads((ROOT / "tests" / "budget.toml").read_text("utf-8"))["seconds"]
    print("processor seconds of tests, and their budget")
    spent = {folder: sum(seconds for seconds, _ in tests) for folder, tests in times.items()}
    for folder in sorted(spent, key=lambda one: -spent[one]):
        known = budget.get(folder, 0)
        print(f"{spent[folder]:7.1f} {known:7g}  {folder} ({len(times[folder])} tests)")
    print(f"{sum(spent.values()):7.1f} {sum(budget.values()):7g}  in all, at most {MOST:.0f}")
    result = complaints(times, budget)
    for line in result:
        print(line, file=sys.stderr)
    return int(bool(result))


if __name__ == "__main__":
    sys.exit(main())
