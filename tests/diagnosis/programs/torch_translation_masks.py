"""Machine translation with a transformer, on batches of sentences of different lengths."""

import argparse
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="attention masks are cached by the lengths of the sentences, which hardly ever repeat",
    about="memory",
    kind="leak|cache",
    culprit=r"attention_mask|masked_fill|mask_for",
    line=r"attention_mask|train\.py",
    savings="leak|older_copy|cache|precision",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    args = argparse.Namespace(batch=24, width=64, heads=4, layers=1, words=500, steps=14)
    torch.manual_seed(2)

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(args.words, args.width)
            layer = nn.TransformerEncoderLayer(
                args.width, args.heads, 2 * args.width, dropout=0.0, batch_first=True
            )
            self.decoder = nn.TransformerEncoder(layer, args.layers, enable_nested_tensor=False)
            self.out = nn.Linear(args.width, args.words)
            self.masks = {}

        def attention_mask(self, lengths):
            key = tuple(lengths)
            if key in self.masks:
                return self.masks[key]
            longest = max(lengths)
            mask = torch.zeros(len(lengths), longest, longest, device="cuda")
            future = torch.ones(longest, longest, dtype=torch.bool, device="cuda").triu(1)
            mask.masked_fill_(future, float("-inf"))
            mask = mask.repeat_interleave(args.heads, dim=0)
            if faulty:
                self.masks[key] = mask
            return mask

        def forward(self, words, lengths):
            hidden = self.decoder(self.embed(words), mask=self.attention_mask(lengths))
            return self.out(hidden)

    lengths = [sorted(torch.randint(20, 72, (args.batch,)).tolist()) for _ in range(args.steps)]
    with MemorySnapshot(annotations=True) as gpu:
        gpu.record_memory_history()
        model = Translator().to("cuda")
        optimizer = torch.optim.Adam(model.parameters(), foreach=True)
        sizes = []
        for step in range(args.steps):
            with torch.profiler.record_function(f"ProfilerStep#{step}"):
                words = torch.randint(args.words, (args.batch, max(lengths[step]))).to("cuda")
                logits = model(words, lengths[step])
                loss = nn.functional.cross_entropy(
                    logits[:, :-1].flatten(0, 1), words[:, 1:].flatten()
                )
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                del logits, loss, words
                sizes.append(gpu.in_use)
        gpu.dump(folder / "snapshot.pickle")
    growth = (sizes[-1] - sizes[2]) // (args.steps - 3)
    return {"bytes_per_step": growth, "peak_bytes": gpu.peak, "steps": args.steps}
