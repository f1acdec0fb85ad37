"""Learn hand gestures from a small set of key points, with short epochs and loader workers."""

import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="workers for a set in memory start anew in each epoch, and epochs have five batches",
    about="time",
    kind="step_variation|input_bound|idle_between_steps|host_bound|python_work|lock_wait",
    culprit=r"DataLoader|worker",
    magnitude=5,
    line="",
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(17)
    torch.set_num_threads(1)

    class KeyPoints(Dataset):
        """Positions of 21 points of a hand, over 16 frames."""

        def __init__(self, clips=160, gestures=8):
            points = torch.randn(clips, 16, 63)
            self.points = points - points.mean(dim=1, keepdim=True)
            self.labels = torch.randint(gestures, (clips,))

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, index):
            return self.points[index], self.labels[index]

    class GestureNet(nn.Module):
        def __init__(self, gestures=8, width=320):
            super().__init__()
            self.frames = nn.Conv1d(63, width, 3, padding=1)
            self.motion = nn.Conv1d(width, width, 3, padding=1)
            self.out = nn.Linear(width, gestures)

        def forward(self, clips):
            x = torch.relu(self.frames(clips.transpose(1, 2)))
            return self.out(torch.relu(self.motion(x)).amax(dim=2))

    workers = 2 if faulty else 0
    loader = DataLoader(KeyPoints(), batch_size=32, shuffle=True, num_workers=workers)
    model = GestureNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def fit_epochs(epochs, prof=None):
        begun = time.perf_counter()
        for _ in range(epochs):
            for clips, labels in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(clips), labels)
                loss.backward()
                optimizer.step()
                if prof:
                    prof.step()
        return (time.perf_counter() - begun) / (epochs * len(loader))

    fit_epochs(2)
    seconds = fit_epochs(8)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=15, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "gestures"),
    ) as prof:
        fit_epochs(4, prof)
    return {"mean_step_seconds": seconds, "steps": 15}
