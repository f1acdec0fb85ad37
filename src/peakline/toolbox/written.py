"""What several tools write their answers with: compact JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable


def compact_json(document: object, *, ascii_only: bool = True) -> bytes:
    """``document`` without blanks; raises ValueError for a number that is not finite."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False)
    return text.encode("utf-8", "replace")


def quoted_csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> bytes:
    """A header and rows, every field quoted; None is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode("utf-8", "replace")
