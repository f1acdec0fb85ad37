"""Places that tests of the repository need: unreadable ones, and files in sessions."""

import os
import time
from contextlib import contextmanager

NOBODY = 65534

FOREIGN = (
    "vm.op_stats_v2.pb", "ALL_HOSTS.op_stats_v2.pb", "NO_HOST.dcn_collective_stats.pb",
    "ALL_HOSTS.smart_suggestion.pb", "vm.SSTABLE", "vm.metadata.SSTABLE", "vm.trie.SSTABLE",
    "jit_step.hlo_proto.pb", "NO_MODULE.hlo_proto.pb", ".cached_tools.json", "cache_version.txt",
    "vm.trace.json.gz", "perfetto_trace.json.gz", "vm.trace", "vm.tracetable",
    "vm.overview_page.json", "vm.memory_profile.json.gz", "input_pipeline.pb", "vm.xplane.riegeli",
    "xplane.pb", ".xplane.pb",
)  # fmt: skip
"""What XProf, TensorBoard and JAX leave in a session beside the hosts' profiles."""


def put(root, *names, content=b"x"):
    for name in names:
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return str(root)


@contextmanager
def as_nobody():
    """Without the rights of root, for whom nothing is unreadable."""
    if os.geteuid():
        yield
        return
    # Python imports a module for this at the first time, which lies where nobody else may read.
    time.strptime("2026", "%Y")
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
