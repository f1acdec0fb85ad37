"""Random StepStats with everything that the timeline's rules depend on."""

import random

from peakline.schema import RunMetadata

_DEVICES = (
    "/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:0",
    "/job:worker/replica:0/task:1/device:CPU:0", "/device:GPU:0/stream:all",
    "/device:GPU:0/stream:13", "/device:GPU:0/stream:2<MemcpyH2D>", "/device:GPU:0/memcpy",
    "/device:GPU:0/sync", "/gpu:0",
)  # fmt: skip
_NODES = ("a", "b", "scope/c", "scope/c/_3", "_SOURCE", "RecvTensor", "a:MatMul", "ü", 'q"t')
_LABELS = (
    "{} = MatMul(a, b:1, ^scope/c)", "[cpu 1.0MB 0.5MB] {} = Add(scope/c/_3, a)", "{} = NoOp()",
    "{} = _Send(a @/cpu:0) extra", "x = y = Odd(a)(b)", "kernel details @@a:MatMul#id=3#",
    "MEMCPYHtoD @@b#", "@@#", "#@@scope/c:Conv#", "", "no label at all",
)  # fmt: skip


def random_run_metadata(seed: int) -> RunMetadata:
    """A small StepStats; names, labels and times repeat and collide."""
    rng = random.Random(seed)
    metadata = RunMetadata()
    for _ in range(rng.randrange(5)):
        device = metadata.step_stats.dev_stats.add(device=rng.choice(_DEVICES))
        for _ in range(rng.randrange(12)):
            name = rng.choice(_NODES)
            node = device.node_stats.add(
                node_name=name,
                all_start_micros=rng.choice((0, 1, rng.randrange(60))),
                all_end_rel_micros=rng.randrange(20),
                timeline_label=rng.choice(_LABELS).format(name),
            )
            for slot in range(rng.randrange(4)):
                _random_output(rng, node.output.add(slot=slot))
    return metadata


def _random_output(rng, output):
    if rng.random() < 0.1:
        return
    tensor = output.tensor_description
    tensor.SetInParent()
    tensor.dtype = rng.choice((0, 1, 3, 9, 20, 101, 119))
    if rng.random() < 0.9:
        tensor.shape.SetInParent()
        if rng.random() < 0.1:
            tensor.shape.unknown_rank = True
        else:
            for _ in range(rng.randrange(4)):
                tensor.shape.dim.add(size=rng.choice((0, 1, 7, 1024, -1)))
    if rng.random() < 0.9:
        place = tensor.allocation_description
        place.SetInParent()
        place.requested_bytes = rng.choice((0, 4, 400, 2**40))
        place.allocated_bytes = rng.choice((0, 256, 512))
        place.allocator_name = rng.choice(("", "cpu", "GPU_0_bfc"))
        place.allocation_id = rng.choice((0, 1, 2, 77))
        place.has_single_reference = rng.random() < 0.5
        place.ptr = rng.choice((0, 2**63 + 5, 94_000_000))
