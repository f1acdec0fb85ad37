"""Score the recorded pairs: ``python -m tests.diagnosis.score [NAME...] [--open | --held-out]``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.diagnosis.scoring import names, pair_of, score


def run() -> None:
    """One line per pair, and the figures of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--open", action="store_true", help="only those that are not held out")
    parser.add_argument("--held-out", action="store_true", help="only those that are")
    parser.add_argument("--figures", action="store_true", help="no lines, only the figures")
    parser.add_argument("--round", type=int, help="only those of this round")
    options = parser.parse_args()
    chosen = options.names or names()
    if options.open or options.held_out:
        chosen = [name for name in chosen if pair_of(name).is_held_out == options.held_out]
    if options.round:
        chosen = [name for name in chosen if pair_of(name).round == options.round]
    with ProcessPoolExecutor() as pool:
        scores = list(pool.map(score, chosen))
    out = sys.stdout
    for one in scores if not options.figures else ():
        marks = "".join(
            f" {key}={'yes' if value else 'NO'}"
            for key in ("line", "magnitude", "saving")
            if (value := getattr(one, key)) is not None
        )
        out.write(f"{one.name:28} {one.verdict:7} diff={one.diff}{marks}  {one.said}\n")
        out.writelines(f"    FALSE ALARM {alarm}\n" for alarm in one.alarms)
        out.writelines(f"    also {other}\n" for other in one.others)
        if one.saving is False:
            out.write(f"    saving: {one.saving_said}\n")
    counts = Counter(one.verdict for one in scores)
    out.write(f"named {counts['SAID'] + counts['ADVICE']} of {len(scores)} {dict(counts)}\n")
    out.write(f"false alarms on {sum(bool(one.alarms) for one in scores)} twins\n")
    for key in ("line", "magnitude", "saving"):
        said = [value for one in scores if (value := getattr(one, key)) is not None]
        out.write(f"{key} right {sum(said)} of {len(said)}\n")
    out.write(f"diff {dict(Counter(one.diff for one in scores))}\n")


if __name__ == "__main__":
    run()
