"""Programs in XLA's text form with what compiled programs of one machine do not have.

XLA's parser takes them all (tests/conformance/test_hlo_cost_peers.py).
"""

import re
from pathlib import Path

_TEXT = Path(__file__).with_name("hlo_odd.txt").read_text(encoding="utf-8")
_ONE = re.compile(r"^==== (\w+)\n(.*?)(?=^==== |\Z)", re.DOTALL | re.MULTILINE)
ODD: dict[str, str] = dict(_ONE.findall(_TEXT))
"""By what is odd in them."""
