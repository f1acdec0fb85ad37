"""Write ``docs/openapi.json``: what the HTTP face says of itself.

Usage::

    python scripts/generate_openapi.py           # write it
    python scripts/generate_openapi.py --check   # write nothing; exit 1 if it is stale

The document is read from the installed package and written into this checkout.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from peakline.engine import Engine
from peakline.service.access import Access
from peakline.service.access_log import OFF, AccessLog
from peakline.service.core import Analysis
from peakline.service.http import create_app
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings

PLACE = Path(__file__).resolve().parent.parent / "docs" / "openapi.json"


def document() -> str:
    """The text of the file."""
    settings = Settings(roots=(".",))
    access, metrics = Access(settings), Metrics()
    analysis = Analysis(settings, access=access, engine=Engine(), metrics=metrics)
    app = create_app(settings, analysis, access, AccessLog(OFF), metrics)
    return json.dumps(app.state.openapi(), indent=1) + "\n"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Write docs/openapi.json.")
    parser.add_argument("--check", action="store_true", help="exit 1 if it is stale")
    check = parser.parse_args().check
    text = document()
    if PLACE.exists() and PLACE.read_text() == text:
        return 0
    if not check:
        PLACE.write_text(text)
    print(f"{'stale' if check else 'written'}: {PLACE.name}")
    return 1 if check else 0


if __name__ == "__main__":
    sys.exit(main())
