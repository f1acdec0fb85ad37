"""Recognition of phonemes on aligned frames, which logs the error rate of what it trains on."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="each training step decodes its batch and computes edit distances in pure Python",
    about="time",
    kind="python_work|host_bound|idle_between_steps",
    culprit=r"edit_distance|levenshtein|error_rate|greedy_decode",
    line=r"edit_distance|error_rate|greedy_decode",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(29)
    torch.set_num_threads(1)

    def edit_distance(hypothesis, reference):
        row = list(range(len(reference) + 1))
        for i, a in enumerate(hypothesis, 1):
            diagonal, row[0] = row[0], i
            for j, b in enumerate(reference, 1):
                best = diagonal if a == b else diagonal + 1
                if row[j] + 1 < best:  # noqa: PLR1730
                    best = row[j] + 1
                if row[j - 1] + 1 < best:  # noqa: PLR1730
                    best = row[j - 1] + 1
                diagonal, row[j] = row[j], best
        return row[-1]

    def greedy_decode(best):
        return [c for c, before in zip(best, [0, *best], strict=False) if c not in (0, before)]

    def error_rate(logits, targets):
        pairs = zip(logits.argmax(-1).tolist(), targets.tolist(), strict=True)
        errors = sum(edit_distance(greedy_decode(h), greedy_decode(t)) for h, t in pairs)
        return errors / targets.numel()

    class AcousticModel(nn.Module):
        def __init__(self, mels=40, hidden=24, tokens=29):
            super().__init__()
            self.subsample = nn.Conv1d(mels, hidden, 5, stride=2, padding=2)
            self.encoder = nn.Sequential(
                nn.Conv1d(hidden, hidden, 9, padding=4), nn.ReLU(),
                nn.Conv1d(hidden, hidden, 9, padding=4), nn.ReLU(),
            )  # fmt: skip
            self.classifier = nn.Linear(hidden, tokens)

        def forward(self, mel):
            x = self.encoder(torch.relu(self.subsample(mel)))
            return self.classifier(x.transpose(1, 2))

    class Recognizer:
        def __init__(self):
            self.model = AcousticModel()
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-4)
            self.log = []

        def training_step(self, batch, batch_idx):
            mel, targets = batch
            logits = self.model(mel)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
            if faulty or batch_idx % 500 == 499:
                self.log.append(error_rate(logits.detach(), targets))
            return loss

        def fit(self, batch, steps, prof=None):
            took = []
            for batch_idx in range(steps):
                begin = time.perf_counter()
                loss = self.training_step(batch, batch_idx)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                took.append(time.perf_counter() - begin)
                if prof is not None:
                    prof.step()
            return took

    batch = torch.randn(8, 40, 240), torch.randint(29, (8, 120))
    recognizer = Recognizer()
    took = recognizer.fit(batch, 20)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "phonemes"),
        record_shapes=True,
        with_stack=True,
    ) as prof:
        recognizer.fit(batch, 7, prof)
    return {"step_seconds": median(took[4:]), "utterances": 8, "steps": 4}
