"""One rank of a small job over gloo on the CPU: ``RANK=... WORLD_SIZE=... torch_job.py KIND``.

``KIND`` is ``ddp``, ``fat``, ``host``, ``fsdp``, ``pipeline`` or ``mesh``; ``VARIANT=faulty``
plants its cause in one rank. Every rank waits for its input as from a disk, so that the few cores
of the machine are shared by few at a time, and what is planted is large against their scheduling.
The profiler records the last steps into ``OUT``, the rank's own clock is written there.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

KIND = sys.argv[1]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FAULTY = os.environ["VARIANT"] == "faulty"
OUT = Path(os.environ["OUT"])
NAMES = os.environ["NAMES"]
SETTLING, RECORDED = 6, {"ddp": 6, "host": 3}.get(KIND, 4)
WIDTH, BATCH = 192, 32
SLOW = {"ddp": 2, "fat": 0, "host": 1, "fsdp": 1, "pipeline": 2, "mesh": 3}[KIND]
IS_SLOW = FAULTY and RANK == SLOW


class Batches(torch.utils.data.IterableDataset):
    """Batches on a disk, which is slower on one rank."""

    def __iter__(self):
        while True:
            time.sleep(0.12 if IS_SLOW and KIND == "ddp" else 0.03)
            yield torch.rand(BATCH, WIDTH), torch.arange(BATCH) % 10


def layers(width=WIDTH):
    """A small network, of which a pipeline has one layer a stage."""
    return nn.Sequential(
        nn.Linear(WIDTH, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, 10),
    )  # fmt: skip


def augment(batch):
    """Host code of one's own, which is slow on one rank."""
    time.sleep(0.09 if IS_SLOW and KIND in {"host", "fsdp"} else 0.002)
    return batch + 0.01


def batches():
    """Batches, without end."""
    return iter(torch.utils.data.DataLoader(Batches(), batch_size=None))


def ddp_step():
    model = nn.parallel.DistributedDataParallel(layers(), bucket_cap_mb=0.15)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    data = batches()
    history = []

    def step():
        images, labels = next(data)
        outputs = model(augment(images))
        loss = nn.functional.cross_entropy(outputs, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if KIND == "fat" and IS_SLOW:
            # Rank 0 evaluates, and holds what it has seen.
            history.append([images.repeat(200, 1), outputs.detach().clone()])

    return step


def fsdp_step():
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("dp",))
    model = layers()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    data = batches()

    def step():
        images, labels = next(data)
        loss = nn.functional.cross_entropy(model(augment(images)), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def products(count):
    """Work that only the slow rank has."""
    table = torch.ones(400, 400)
    for _ in range(count):
        torch.mm(table, table)


class Stage(nn.Module):
    """The layer of a stage; the slow one has further products."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, values):
        time.sleep(0.006)
        if IS_SLOW:
            products(10)
        return torch.relu(self.layer(values))


def pipeline_step():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    stage = PipelineStage(Stage(), RANK, WORLD, torch.device("cpu"))

    def loss_of(outputs, target):
        return nn.functional.mse_loss(outputs, target)

    order = Schedule1F1B(stage, n_microbatches=4, loss_fn=loss_of)
    optimizer = torch.optim.SGD(stage.submod.parameters(), 1e-3)
    data = batches()

    def step():
        if RANK == 0:
            images, _ = next(data)
            order.step(images)
        elif RANK == WORLD - 1:
            order.step(target=torch.zeros(BATCH, WIDTH))
        else:
            order.step()
        optimizer.step()
        optimizer.zero_grad()

    return step


def mesh_step():
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = layers()
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, mesh["tp"], plan)
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    data = batches()

    def step():
        images, labels = next(data)
        if IS_SLOW:
            products(30)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def handler():
    """Where the trace goes, in the habit that ``NAMES`` says."""
    if NAMES == "handler":
        return tensorboard_trace_handler(str(OUT), use_gzip=True)
    place = {"dp": RANK // 2, "tp": RANK % 2}

    def write(recorded):
        path = OUT / NAMES.format(rank=RANK, **place)
        path.parent.mkdir(parents=True, exist_ok=True)
        recorded.export_chrome_trace(str(path))

    return write


def main():
    torch.set_num_threads(1)
    torch.manual_seed(RANK)
    dist.init_process_group("gloo")
    others = {"fsdp": fsdp_step, "pipeline": pipeline_step, "mesh": mesh_step}
    step = others.get(KIND, ddp_step)()
    ends = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=SETTLING - 1, warmup=1, active=RECORDED, repeat=1),
        record_shapes=True,
        profile_memory=KIND == "fat",
        with_stack=KIND == "host",
        on_trace_ready=handler(),
    ) as recording:
        for _ in range(SETTLING + RECORDED):
            step()
            ends.append(time.time_ns())
            recording.step()
    clock = {"rank": RANK, "pid": os.getpid(), "ends_ns": ends[SETTLING - 1 :]}
    (OUT / f"clock_{RANK}.json").write_text(json.dumps(clock))
    dist.barrier()
    dist.destroy_process_group()


main()
