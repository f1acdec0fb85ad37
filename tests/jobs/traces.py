"""The smallest traces of ranks, which say who they are."""

import gzip
import json

from tests.repository.places import put


def trace(rank, world=3, name="aten::mm", memory=False):
    """A trace of one op that says its rank, None for one that says none."""
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": 6, "dur": 10}
    freed = {"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": 7}
    freed |= {"tid": 7, "ts": 8, "args": {"Device Type": 0, "Device Id": -1, "Addr": 1}}
    events = [event, *([freed | {"args": freed["args"] | {"Bytes": 64}}] if memory else [])]
    info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world}}
    return json.dumps(info | {"traceEvents": events}).encode()


def put_job(folder):
    """Ranks 0 to 2 of four: 1 cannot be read, only 2 has memory, 3 is missing."""
    for rank in (0, 2):
        content = trace(rank, 4, f"aten::r{rank}", memory=rank == 2)
        put(folder, f"rank{rank}.json", content=content)
    put(folder, "rank1.json.gz", content=gzip.compress(trace(1, 4))[:40])
    return folder
