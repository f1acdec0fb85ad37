"""Train a downscaling network for weather maps, with threads that fetch batches ahead."""

from __future__ import annotations

import threading
import time
from collections import deque
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the fetching threads hold the lock while they read, so the loop waits for the lock",
    about="time",
    kind=r"lock_wait|input_bound|host_bound|idle_between_steps",
    culprit=r"Prefetcher|next_maps|acquire|__enter__|\block\b|train\.py:6\d|wait",
    line=r"next_maps|acquire|__enter__|train\.py:6\d|wait|threading\.py",
    is_held_out=True,
    round=2,
)


class MapArchive:
    """Maps of one hour each, from a disk on the network."""

    def read(self, hour):
        """Coarse and fine maps of eight regions."""
        import numpy as np

        time.sleep(0.025)
        fine = np.random.default_rng(hour).random((8, 48, 48), np.float32)
        return fine.reshape(8, 12, 4, 12, 4).mean(axis=(2, 4)), fine


class Prefetcher:
    """Up to ``depth`` batches, read by threads."""

    def __init__(self, archive, workers, depth, is_exclusive):
        self.archive, self.depth, self.is_exclusive = archive, depth, is_exclusive
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.ready, self.hour = deque(), 0
        for number in range(workers):
            threading.Thread(target=self.work, name=f"reader-{number}", daemon=True).start()

    def work(self):
        while True:
            with self.changed:
                while len(self.ready) >= self.depth:
                    self.changed.wait()
                hour = self.hour = self.hour + 1
                if self.is_exclusive:
                    self.ready.append(self.archive.read(hour))
                    self.changed.notify_all()
                    continue
            maps = self.archive.read(hour)
            with self.changed:
                self.ready.append(maps)
                self.changed.notify_all()

    def next_maps(self):
        """The oldest batch."""
        with self.changed:
            while not self.ready:
                self.changed.wait()
            maps = self.ready.popleft()
            self.changed.notify_all()
        return maps


def record(folder: Path, *, faulty: bool) -> dict:
    """Train with maps of an archive; ten steps are profiled."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState

    class Downscaler(nn.Module):
        @nn.compact
        def __call__(self, coarse):
            x = coarse.reshape(coarse.shape[0], -1)
            x = nn.gelu(nn.Dense(768, name="lift")(x))
            x = x + nn.gelu(nn.Dense(768, name="mix")(x))
            return nn.Dense(48 * 48, name="fine")(x).reshape(-1, 48, 48)

    module = Downscaler()
    params = module.init(jax.random.key(5), jnp.zeros((1, 12, 12)))
    state = TrainState.create(apply_fn=module.apply, params=params, tx=optax.adamw(2e-4))

    def downscale_step(state, coarse, fine):
        def mae(params):
            return jnp.abs(state.apply_fn(params, coarse) - fine).mean()

        loss, grads = jax.value_and_grad(mae)(state.params)
        return state.apply_gradients(grads=grads), loss

    downscale_step = jax.jit(downscale_step, donate_argnums=0)
    maps = Prefetcher(MapArchive(), workers=6, depth=3, is_exclusive=faulty)

    def run(state, steps):
        times = []
        for number in range(steps):
            times.append(time.perf_counter())
            with jax.profiler.StepTraceAnnotation("downscale", step_num=number):
                state, loss = downscale_step(state, *maps.next_maps())
                loss.block_until_ready()
        times.append(time.perf_counter())
        return state, float(loss), np.diff(times)

    state, _, _ = run(state, 4)
    state, _, times = run(state, 30)
    jax.profiler.start_trace(folder / "trace")
    state, loss, _ = run(state, 10)
    jax.profiler.stop_trace()
    for path in [path for path in (folder / "trace").rglob("*") if path.is_file()]:
        if path.suffix == ".pb":
            path.rename(folder / "worker0.xplane.pb")
        else:
            path.unlink()
    return {"median_step_seconds": float(np.median(times)), "steps": 10, "loss": loss}
