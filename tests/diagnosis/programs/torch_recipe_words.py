"""Hidden words of recipes are guessed from the others: every seventh word is hidden."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

WORDS, WIDTH, BATCH, LENGTH = 6000, 96, 6, 70
LOGIT_BYTES = BATCH * LENGTH * WORDS * 4

PAIR = Pair(
    fault="logits of all words are computed, though only the hidden seventh of them has a loss",
    about="memory",
    kind="huge_temporary|held_after_use|accumulated_in_step|peak_outside_steps",
    culprit=r"guess_loss",
    line=r"guess_loss",
    savings="temporary|precision|recompute|batch",
    faulty_allowed=(r"expensive_op", r"held_after_use"),
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(76)
    torch.set_num_threads(1)

    class RecipeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(WORDS, WIDTH)
            self.near = nn.Conv1d(WIDTH, 2 * WIDTH, 7, padding=3)
            self.far = nn.Conv1d(2 * WIDTH, WIDTH, 15, padding=7)

        def forward(self, words):
            x = self.words(words).transpose(1, 2)
            x = functional.relu(self.near(x))
            return functional.relu(self.far(x)).transpose(1, 2)

    model = RecipeNet()
    head = nn.Linear(WIDTH, WORDS)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01)
    is_hidden = (torch.arange(LENGTH) % 7 == 3).expand(BATCH, LENGTH)

    def guess_loss(features, words):
        if faulty:
            logits = head(features)
            target = words.masked_fill(~is_hidden, -100)
            return functional.cross_entropy(logits.transpose(1, 2), target)
        return functional.cross_entropy(head(features[is_hidden]), words[is_hidden])

    def train_step():
        words = torch.randint(1, WORDS, (BATCH, LENGTH))
        began = time.perf_counter()
        loss = guess_loss(model(words.masked_fill(is_hidden, 0)), words)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return time.perf_counter() - began

    times = [train_step() for _ in range(8)]
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=5, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "recipes"),
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for _ in range(7):
            train_step()
            prof.step()
    logit_bytes = LOGIT_BYTES if faulty else LOGIT_BYTES // 7
    return {"step_seconds": median(times), "logit_bytes": logit_bytes, "steps": 5}
