"""How many random inputs a comparison makes: PEAKLINE_CONFORMANCE_SEEDS; more in `make soak`."""

import os

SEEDS = int(os.environ.get("PEAKLINE_CONFORMANCE_SEEDS", "20"))
