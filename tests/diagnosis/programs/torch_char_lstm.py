"""A character-level LSTM on one long text, read in chunks with the state carried on."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the state is not detached: with retain_graph=True all chunks' graphs stay and grow",
    about="memory",
    kind="leak",
    culprit=r"lstm|CharRNN|MkldnnRnn|forward|cross_entropy",
    line=r"forward|\btrain\b",
    magnitude=8_343_552,  # what a chunk's graph holds, as the profiler counts it
    tolerance=0.3,
    # Each step goes back through all chunks before it, so it takes longer than the last one.
    faulty_allowed=(r"step_variation", r"one_pass|accumulated_in_step"),
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(71)
    torch.set_num_threads(1)
    text = torch.randint(0, 80, (24, 40 * 40 + 1))
    seq_length = 40

    class CharRNN(nn.Module):
        def __init__(self, tokens=80, n_hidden=128, n_layers=1):
            super().__init__()
            self.embed = nn.Embedding(tokens, 64)
            self.lstm = nn.LSTM(64, n_hidden, n_layers, batch_first=True)
            self.fc = nn.Linear(n_hidden, tokens)

        def forward(self, x, hidden):
            r_output, hidden = self.lstm(self.embed(x), hidden)
            return self.fc(r_output), hidden

        def init_hidden(self, batch_size):
            return torch.zeros(1, batch_size, 128), torch.zeros(1, batch_size, 128)

    net = CharRNN()
    criterion = nn.CrossEntropyLoss()

    def train(first, chunks, prof=None):
        h = net.init_hidden(24)
        times = []
        for n in range(first, first + chunks):
            start = time.perf_counter()
            x = text[:, n * seq_length : (n + 1) * seq_length]
            y = text[:, n * seq_length + 1 : (n + 1) * seq_length + 1]
            if not faulty:
                h = tuple(each.detach() for each in h)
            net.zero_grad()
            output, h = net(x, h)
            loss = criterion(output.reshape(-1, 80), y.reshape(-1))
            loss.backward(retain_graph=faulty)
            for p in net.parameters():
                p.data.add_(p.grad, alpha=-0.5)
            times.append(time.perf_counter() - start)
            if prof:
                prof.step()
        return times

    times = train(0, 12)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=6, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "characters"),
        profile_memory=True,
        with_stack=True,
        record_shapes=True,
    ) as prof:
        train(12, 7, prof)
    return {"step_seconds": median(times), "first_and_last_seconds": times[::11], "steps": 6}
