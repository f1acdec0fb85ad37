"""A topic classifier of one transformer block on frozen pretrained word vectors."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the whole float16 table is cast to float32 in every step, to look up 512 rows",
    about="time",
    kind="expensive_op|time_in_copies|churn|redundant_copy|huge_temporary",
    culprit=r"aten::(to|_to_copy|copy_)|FrozenEmbedding",
    line=r"FrozenEmbedding|train\.py.*forward",
    savings="precision|temporary|duplicate",
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(3)
    torch.set_num_threads(1)

    class FrozenEmbedding(nn.Module):
        """Pretrained word vectors, stored in half precision."""

        def __init__(self, words, width):
            super().__init__()
            self.register_buffer("weight", torch.randn(words, width).half())

        def forward(self, ids):
            if faulty:
                return F.embedding(ids, self.weight.float())
            return F.embedding(ids, self.weight).float()

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, width = x.shape
            qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v)
            x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class TextClassifier(nn.Module):
        def __init__(self, words=60000, classes=16, width=128, depth=1):
            super().__init__()
            self.tokens = FrozenEmbedding(words, width)
            self.blocks = nn.ModuleList(Block(width, 4) for _ in range(depth))
            self.head = nn.Linear(width, classes)

        def forward(self, ids):
            x = self.tokens(ids)
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean(dim=1))

    model = TextClassifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ids, topics = torch.randint(60000, (16, 32)), torch.randint(16, (16,))

    def training_step():
        loss = F.cross_entropy(model(ids), topics)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    seconds = []
    for _ in range(24):
        start = time.perf_counter()
        training_step()
        seconds.append(time.perf_counter() - start)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(skip_first=1, wait=0, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "topics"),
        record_shapes=True,
        with_stack=True,
        with_modules=True,
    ) as prof:
        for _ in range(8):
            training_step()
            prof.step()
    return {"step_seconds": median(seconds[4:]), "steps": 4}
