"""A matrix factorisation recommender that reports metrics from a background thread."""

import json
import threading
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the training loop waits for a lock that the writer thread holds while it writes",
    about="time",
    kind="lock_wait|host_bound|idle_between_steps|python_work",
    culprit=r"acquire|MetricsWriter|add_scalar|_thread\.lock",
    line=r"add_scalar|acquire",
)


class MetricsWriter:
    """Collects scalars and writes them to a slow store, in a thread of its own."""

    def __init__(self, holds_lock):
        self.holds_lock = holds_lock
        self.lock = threading.Lock()
        self.pending = []
        self.is_running = True
        self.thread = threading.Thread(target=self.run, name="metrics-writer", daemon=True)
        self.thread.start()

    def add_scalar(self, tag, value, step):
        """Put one value into the queue."""
        self.lock.acquire()
        self.pending.append((tag, value, step))
        self.lock.release()

    def run(self):
        """Write what is pending, until closed."""
        while self.is_running:
            with self.lock:
                batch, self.pending = self.pending, []
                if self.holds_lock:
                    self.write(batch)
            if not self.holds_lock:
                self.write(batch)
            time.sleep(0.0005)

    def write(self, batch):
        """Send to the store, which answers after some milliseconds."""
        json.dumps(batch)
        time.sleep(0.006)

    def close(self):
        """Stop the thread."""
        self.is_running = False
        self.thread.join()


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import profile, schedule

    torch.manual_seed(6)
    torch.set_num_threads(1)

    class MatrixFactorization(nn.Module):
        def __init__(self, users=3000, items=2000, factors=32):
            super().__init__()
            self.user, self.item = nn.Embedding(users, factors), nn.Embedding(items, factors)
            self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)

        def forward(self, users, items):
            scores = (self.user(users) * self.item(items)).sum(dim=1)
            return scores + self.user_bias(users).squeeze(1) + self.item_bias(items).squeeze(1)

    model = MatrixFactorization()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    users, items = torch.randint(3000, (8192,)), torch.randint(2000, (8192,))
    ratings = torch.rand(8192) * 5
    writer = MetricsWriter(holds_lock=faulty)

    def train(steps, prof=None):
        times = []
        for step in range(steps):
            began = time.perf_counter()
            loss = nn.functional.mse_loss(model(users, items), ratings)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            writer.add_scalar("loss", loss.item(), step)
            times.append(time.perf_counter() - began)
            if prof is not None:
                prof.step()
        return median(times)

    train(3)
    seconds = train(30)
    with profile(
        schedule=schedule(wait=1, warmup=1, active=8, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "movies"),
        with_stack=True,
    ) as prof:
        train(11, prof)
    writer.close()
    return {"step_seconds": seconds, "steps": 8}
