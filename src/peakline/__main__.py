"""Where ``peakline`` and ``python -m peakline`` begin.

It imports next to nothing itself, so that an interrupt while the command line is being imported
ends as quietly as one later: with the exit code 130 and no traceback.
"""

from __future__ import annotations

import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> int:
    """Run the command line with the process's arguments; returns its exit code."""
    try:
        from peakline.cli.main import main as run
    except KeyboardInterrupt:
        return _INTERRUPTED
    return run()


if __name__ == "__main__":
    sys.exit(main())
