"""Skip-gram embeddings of items that are bought together, with negative samples."""

from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="gradients of both large tables are dense, though a step uses under 3 % of their rows",
    about="memory",
    kind="huge_temporary|redundant_copy",
    culprit=r"embedding_(dense_)?backward|EmbeddingBackward|aten::embedding|Item2Vec_\d|Item2Vec\.forward",
    line=r"Item2Vec|forward|train_batch|train\.py",
    savings="temporary|duplicate|precision|older_copy",
    faulty_allowed=(r"aten::(zero_|fill_|add_)|SGD",),  # dense gradients cost time as well
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import time
    from statistics import median

    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(28)
    torch.set_num_threads(1)
    n_items, dim, negatives = 60_000, 32, 5

    class Item2Vec(nn.Module):
        def __init__(self):
            super().__init__()
            self.target = nn.Embedding(n_items, dim, sparse=not faulty)
            self.context = nn.Embedding(n_items, dim, sparse=not faulty)

        def forward(self, center, positive, negative):
            v = self.target(center)
            good = (v * self.context(positive)).sum(-1)
            bad = torch.einsum("bd,bnd->bn", v, self.context(negative))
            return -(nn.functional.logsigmoid(good).mean() + nn.functional.logsigmoid(-bad).mean())

    baskets = torch.randint(n_items, (40, 2, 256))

    def train_batch(pairs):
        negative = torch.randint(n_items, (pairs.shape[1], negatives))
        loss = model(pairs[0], pairs[1], negative)
        opt.zero_grad()
        loss.backward()
        opt.step()

    took = []
    prof = profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=30, warmup=1, active=6, repeat=1),
        on_trace_ready=lambda p: write_trace(p, folder, "item2vec"),
        profile_memory=True,
        record_shapes=True,
        with_stack=True,
    )
    model = Item2Vec()
    opt = torch.optim.SGD(model.parameters(), lr=0.025)
    with prof:
        for pairs in baskets[:38]:
            start = time.perf_counter()
            train_batch(pairs)
            took.append(time.perf_counter() - start)
            prof.step()
    return {
        "step_seconds": median(took[4:29]),
        "dense_gradient_bytes": n_items * dim * 4,
        "steps": 6,
    }
