"""Records ``gloo_groups``: ``python gloo_groups.py OUT``; rank 1 of four writes the sample."""

import gzip
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

RANKS, ROUNDS = 4, 2


def one_round(rank, pair, across):
    """Every collective, each of another size."""

    def zeros(size):
        return [torch.zeros(size) for _ in range(RANKS)]

    dist.all_reduce(torch.ones(100))
    dist.all_reduce(torch.ones(7), group=pair)
    dist.all_reduce(torch.ones(9), group=across)
    dist.all_gather(zeros(5), torch.ones(5))
    dist.all_gather_into_tensor(torch.zeros(6 * RANKS), torch.ones(6))
    dist.all_gather_into_tensor(torch.zeros(12), torch.ones(6), group=pair)
    dist.reduce_scatter_tensor(torch.zeros(3), torch.ones(3 * RANKS))
    dist.reduce_scatter(torch.zeros(3), zeros(3))
    dist.all_to_all_single(torch.zeros(8), torch.ones(8))
    dist.all_to_all(zeros(2), zeros(2))
    dist.broadcast(torch.ones(11), 1)
    dist.reduce(torch.ones(12), 2)
    dist.gather(torch.ones(13), zeros(13) if rank == 0 else None, 0)
    dist.scatter(torch.zeros(14), zeros(14) if rank == 0 else None, 0)
    dist.barrier()
    if rank % 2:
        dist.recv(torch.zeros(15), rank - 1)
    else:
        dist.send(torch.ones(15), rank + 1)
    messages = [
        dist.P2POp(dist.isend, torch.ones(17), (rank + 1) % RANKS),
        dist.P2POp(dist.irecv, torch.zeros(17), (rank - 1) % RANKS),
    ]
    for message in dist.batch_isend_irecv(messages):
        message.wait()


def work(rank, out):
    """One rank: it records both rounds."""
    place = {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1"}
    os.environ.update(place, MASTER_PORT="29577")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    across = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        for _ in range(ROUNDS):
            one_round(rank, pairs[rank // 2], across[rank % 2])
    path = Path(out) / f"rank{rank}.json"
    recorded.export_chrome_trace(str(path))
    dist.destroy_process_group()
    if rank == 1:
        trace = json.loads(path.read_text())
        trace["traceEvents"] = [
            one for one in trace["traceEvents"]
            if one["ph"] == "M" or one.get("name", "").startswith(("c10d::", "gloo:"))
        ]  # fmt: skip
        del trace["traceName"]
        with gzip.GzipFile(Path(out) / "gloo_groups.trace.json.gz", "wb", mtime=0) as file:
            file.write(json.dumps(trace).encode())


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, args=(sys.argv[1],), nprocs=RANKS)
