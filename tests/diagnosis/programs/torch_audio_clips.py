"""Keyword spotting on a folder of recorded clips, with a DataLoader, as a script with arguments."""

import argparse
import gzip
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="each clip is a gzip file of its own, opened and inflated when its sample is fetched",
    about="time",
    kind="input_bound|host_bound|python_work|idle_between_steps",
    culprit=r"SpeechCommands|__getitem__|load_waveform|gzip|enumerate\(DataLoader",
    line=r"__getitem__|load_waveform",
    round=2,
)


def parse_args(words=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--labels", type=int, default=12)
    parser.add_argument("--samples", type=int, default=16000)
    parser.add_argument("--num-workers", type=int, default=0)
    return parser.parse_args(words)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(23)
    torch.set_num_threads(1)
    args = parse_args()

    class SpeechCommands(Dataset):
        def __init__(self, root):
            self.root = root
            if not faulty:
                self.waves = np.load(root / "train.npy", mmap_mode="r")

        def __len__(self):
            return 240

        def clip(self, index):
            return self.root / f"{index:05}.raw.gz"

        def load_waveform(self, index):
            if faulty:
                return np.frombuffer(gzip.decompress(self.clip(index).read_bytes()), np.int16)
            return self.waves[index]

        def __getitem__(self, index):
            wave = torch.from_numpy(self.load_waveform(index).astype(np.float32))
            return wave.unsqueeze(0), index % args.labels

    def prepare(root):
        time_axis = np.arange(args.samples)
        waves = [np.sin(time_axis / (9 + i % 40)) + np.cos(time_axis / 61) for i in range(240)]
        waves = (np.stack(waves) * 9000).astype(np.int16)
        if faulty:
            for index, wave in enumerate(waves):
                (root / f"{index:05}.raw.gz").write_bytes(gzip.compress(wave.tobytes()))
        else:
            np.save(root / "train.npy", waves)

    class M5(nn.Module):
        def __init__(self, n_output, n_channel=16):
            super().__init__()
            self.conv1 = nn.Conv1d(1, n_channel, kernel_size=80, stride=16)
            self.bn1 = nn.BatchNorm1d(n_channel)
            self.conv2 = nn.Conv1d(n_channel, n_channel, kernel_size=3)
            self.fc1 = nn.Linear(n_channel, n_output)

        def forward(self, x):
            x = torch.max_pool1d(torch.relu(self.bn1(self.conv1(x))), 4)
            x = torch.relu(self.conv2(x))
            return self.fc1(x.mean(dim=-1))

    model = M5(args.labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def train_epoch(loader, limit, prof=None):
        seconds, start = [], time.perf_counter()
        for i, (data, target) in enumerate(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data), target).backward()
            optimizer.step()
            seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
            if prof is not None:
                prof.step()
            if i + 1 == limit:
                break
        return seconds

    root = Path(tempfile.mkdtemp())
    prepare(root)
    loader = DataLoader(SpeechCommands(root), args.batch_size, num_workers=args.num_workers)
    seconds = train_epoch(loader, 12) + train_epoch(loader, 12)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "commands"),
        with_stack=True,
        profile_memory=True,
    ) as prof:
        train_epoch(loader, 6, prof)
    shutil.rmtree(root)
    return {"step_seconds": median(seconds[4:]), "files_per_step": args.batch_size, "steps": 4}
