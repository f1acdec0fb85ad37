"""Marks of essays by a small transformer, which leaves the padding out."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

BATCH, HEADS, LENGTH, WIDTH = 6, 8, 256, 64
MASK_BYTES = BATCH * HEADS * LENGTH * LENGTH * 4

PAIR = Pair(
    fault="the padding mask is repeated for every head and every row, as float32",
    about="memory",
    kind="huge_temporary|held_after_use|accumulated_in_step",
    culprit=r"aten::repeat(?!\w)",
    savings="temporary|precision",
    magnitude=MASK_BYTES,
    faulty_allowed=(r"(expensive_op|time_in_copies).*(repeat|masked_fill|copy_)",),
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(75)
    torch.set_num_threads(1)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, x, mask):
            qkv = self.qkv(self.norm(x)).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            return x + self.out(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))

    class EssayNet(nn.Module):
        def __init__(self, words=2000):
            super().__init__()
            self.words = nn.Embedding(words, WIDTH)
            self.layers = nn.ModuleList([Layer(), Layer()])
            self.out = nn.Linear(WIDTH, 1)

        def forward(self, words, lengths):
            is_word = torch.arange(LENGTH) < lengths[:, None]
            mask = torch.zeros(BATCH, 1, 1, LENGTH).masked_fill(~is_word[:, None, None], -1e9)
            if faulty:
                mask = mask.repeat(1, HEADS, LENGTH, 1)
            x = self.words(words)
            for layer in self.layers:
                x = layer(x, mask)
            return self.out(x.mean(dim=1)).squeeze(1)

    model = EssayNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step():
        words = torch.randint(2000, (BATCH, LENGTH))
        lengths, marks = torch.randint(40, LENGTH, (BATCH,)), torch.rand(BATCH)
        began = time.perf_counter()
        loss = functional.mse_loss(model(words, lengths), marks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return time.perf_counter() - began

    times = [train_step() for _ in range(8)]
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=5, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "essays"),
        record_shapes=True,
        profile_memory=True,
    ) as prof:
        for _ in range(7):
            train_step()
            prof.step()
    mask_bytes = MASK_BYTES if faulty else BATCH * LENGTH * 4
    return {"step_seconds": median(times), "mask_bytes": mask_bytes, "steps": 5}
