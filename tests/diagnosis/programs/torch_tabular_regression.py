"""A regression on tabular data from NumPy, an MLP with dropout."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="NumPy's float64 is carried through: the data and the model are double",
    about="time",
    kind="float64",
    culprit=r"double|float64|aten::(addmm|mm|linear)",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4096, 96))
    prices = table @ rng.normal(size=(96, 1)) + rng.normal(size=(4096, 1))

    def make_mlp(inputs, hidden, depth):
        layers = []
        for i in range(depth):
            layers += [nn.Linear(inputs if i == 0 else hidden, hidden), nn.ReLU(), nn.Dropout(0.1)]
        return nn.Sequential(*layers, nn.Linear(hidden, 1))

    features, target = torch.from_numpy(table), torch.from_numpy(prices)
    net = make_mlp(96, 384, 3)
    if faulty:
        net = net.double()
    else:
        features, target = features.float(), target.float()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    loss_fn = nn.MSELoss()
    dataset = torch.utils.data.TensorDataset(features, target)

    def fit_epoch(limit):
        took = []
        order = torch.randperm(len(dataset)).split(512)
        for rows in order[:limit]:
            start = time.perf_counter()
            x, y = features[rows], target[rows]
            optimizer.zero_grad(set_to_none=True)
            loss = loss_fn(net(x), y)
            loss.backward()
            optimizer.step()
            took.append(time.perf_counter() - start)
        return took

    fit_epoch(2)
    took = fit_epoch(8)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        for _ in range(1):
            fit_epoch(8)
    write_trace(prof, folder, "housing")
    return {"step_seconds": median(took), "steps": 8}
