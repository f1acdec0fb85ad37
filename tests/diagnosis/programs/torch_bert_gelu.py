"""Masked language modelling with a small BERT whose modules follow the original code."""

import math
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="GELU is written out as eight elementwise ops, with a power, instead of the fused op",
    about="time",
    kind="unfused_elementwise|expensive_op|tiny_ops",
    culprit=r"\bgelu\b|aten::(pow|tanh)|TanhBackward0|PowBackward0|BertIntermediate",
    line=r"gelu|BertIntermediate",
    is_held_out=False,
)


def gelu_new(x):
    """The approximation of the Google BERT repository."""
    import torch

    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(11)
    torch.set_num_threads(1)

    class BertSelfAttention(nn.Module):
        def __init__(self, hidden, heads):
            super().__init__()
            self.heads = heads
            self.query_key_value = nn.Linear(hidden, 3 * hidden)
            self.output = nn.Linear(hidden, hidden)

        def forward(self, hidden_states):
            batch, length, hidden = hidden_states.shape
            split = self.query_key_value(hidden_states).view(batch, length, 3, self.heads, -1)
            q, k, v = split.permute(2, 0, 3, 1, 4)
            context = F.scaled_dot_product_attention(q, k, v)
            return self.output(context.transpose(1, 2).reshape(batch, length, hidden))

    class BertIntermediate(nn.Module):
        def __init__(self, hidden):
            super().__init__()
            self.dense = nn.Linear(hidden, 4 * hidden)
            self.act = gelu_new if faulty else nn.GELU(approximate="tanh")

        def forward(self, hidden_states):
            return self.act(self.dense(hidden_states))

    class BertLayer(nn.Module):
        def __init__(self, hidden, heads):
            super().__init__()
            self.attention = BertSelfAttention(hidden, heads)
            self.intermediate = BertIntermediate(hidden)
            self.output = nn.Linear(4 * hidden, hidden)
            self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))

        def forward(self, hidden_states):
            hidden_states = self.norms[0](hidden_states + self.attention(hidden_states))
            return self.norms[1](hidden_states + self.output(self.intermediate(hidden_states)))

    class BertForMaskedLM(nn.Module):
        def __init__(self, vocab_size=800, hidden=64):
            super().__init__()
            self.embeddings = nn.Embedding(vocab_size, hidden)
            self.encoder = nn.ModuleList(BertLayer(hidden, 4) for _ in range(2))
            self.cls = nn.Linear(hidden, vocab_size)

        def forward(self, input_ids, masked):
            hidden_states = self.embeddings(input_ids)
            for layer in self.encoder:
                hidden_states = layer(hidden_states)
            return self.cls(hidden_states.flatten(0, 1)[masked])

    model = BertForMaskedLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    input_ids = torch.randint(800, (16, 128))
    masked = torch.randperm(2048)[:300]
    labels = input_ids.flatten()[masked]

    def train(steps, prof=None):
        seconds = []
        for _ in range(steps):
            began = time.perf_counter()
            loss = F.cross_entropy(model(input_ids, masked), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            seconds.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(seconds)

    train(2)
    step = train(12)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "bert"),
        record_shapes=True,
        with_stack=True,
    ) as prof:
        train(5, prof)
    return {"step_seconds": step, "steps": 3}
