"""The next chord of a piece of music, by a small transformer with sinusoidal positions."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the table of positions, which never changes, is computed anew in every forward",
    about="time",
    kind="expensive_op|unfused_elementwise|host_bound|tiny_ops",
    culprit=r"position_table|aten::(sin|cos|stack|cat)(?!\w)",
    line=r"position_table",
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(55)
    torch.set_num_threads(1)
    chords, width = 300, 128

    def position_table(max_len=8000):
        place = torch.arange(max_len).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-9.21 / width))
        waves = torch.stack([torch.sin(place * rate), torch.cos(place * rate)], dim=2)
        return waves.reshape(max_len, width)

    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", position_table(), persistent=False)

        def forward(self, x):
            table = position_table() if faulty else self.table
            return x + table[: x.size(1)]

    class ChordModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(chords, width)
            self.positions = Positions()
            self.layer = nn.TransformerEncoderLayer(width, 4, 256, dropout=0.0, batch_first=True)
            self.out = nn.Linear(width, chords)

        def forward(self, x):
            return self.out(self.layer(self.positions(self.embed(x))))

    model = ChordModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def train_step(piece):
        loss = nn.functional.cross_entropy(model(piece[:, :-1]).transpose(1, 2), piece[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    pieces = torch.randint(chords, (20, 5, 65))
    times = []
    for piece in pieces:
        began = time.perf_counter()
        train_step(piece)
        times.append(time.perf_counter() - began)
    begun = time.perf_counter()
    for _ in range(10):
        position_table()
    table_seconds = (time.perf_counter() - begun) / 10
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=4),
        on_trace_ready=lambda prof: write_trace(prof, folder, "chords"),
        with_stack=True,
    ) as prof:
        for piece in pieces[:6]:
            train_step(piece)
            prof.step()
    return {"step_seconds": median(times[5:]), "table_seconds": table_seconds, "steps": 4}
