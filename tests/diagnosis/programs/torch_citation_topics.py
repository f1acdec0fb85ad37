"""Topics of papers by a graph convolution network over their citations."""

import argparse
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="each layer adds self loops and sorts the fixed graph's edges again in each forward",
    about="time",
    kind="expensive_op",
    culprit=r"coalesce|aten::sort|gcn_norm",
    round=4,
)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=20)
    return parser.parse_args([])


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    args = options()
    torch.manual_seed(43)
    torch.set_num_threads(1)
    papers, words, topics, citations = 3000, 256, 7, 40_000
    spent = [0.0]

    def gcn_norm(edges):
        """The adjacency with self loops, divided by the roots of both degrees."""
        began = time.perf_counter()
        loops = torch.arange(papers).repeat(2, 1)
        index = torch.cat([edges, edges.flip(0), loops], dim=1)
        adjacency = torch.sparse_coo_tensor(index, torch.ones(index.shape[1]), (papers, papers))
        adjacency = adjacency.coalesce()
        rows, columns = adjacency.indices()
        degrees = torch.zeros(papers).index_add_(0, rows, adjacency.values()).rsqrt()
        values = degrees[rows] * adjacency.values() * degrees[columns]
        whole = torch.sparse_coo_tensor(
            adjacency.indices(), values, (papers, papers), is_coalesced=True
        )
        spent[0] += time.perf_counter() - began
        return whole

    class GCNConv(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.linear = nn.Linear(inputs, outputs)
            self.adjacency = None

        def forward(self, x, edges):
            if self.adjacency is None or faulty:
                self.adjacency = gcn_norm(edges)
            return torch.sparse.mm(self.adjacency, self.linear(x))

    class GCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = GCNConv(words, args.hidden)
            self.conv2 = GCNConv(args.hidden, topics)

        def forward(self, x, edges):
            x = functional.relu(self.conv1(x, edges))
            x = functional.dropout(x, args.dropout, self.training)
            return functional.log_softmax(self.conv2(x, edges), dim=1)

    features = (torch.rand(papers, words) < 0.05).float()
    labels = torch.randint(topics, (papers,))
    train_mask = torch.rand(papers) < 0.3
    edges = torch.randint(papers, (2, citations))
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def train():
        model.train()
        optimizer.zero_grad()
        with record_function("forward"):
            out = model(features, edges)
            loss = functional.nll_loss(out[train_mask], labels[train_mask])
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        return loss.item()

    train()
    seconds, spent[0] = [], 0.0
    for _ in range(args.epochs):
        began = time.perf_counter()
        train()
        seconds.append(time.perf_counter() - began)
    in_norm = spent[0] / args.epochs
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(skip_first=1, wait=0, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "citations"),
    ) as prof:
        for _ in range(7):
            train()
            prof.step()
    return {"step_seconds": median(seconds), "norm_seconds": in_norm, "steps": 4}
