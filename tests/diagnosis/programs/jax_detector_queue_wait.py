"""Train a small detector from a loader thread and a bounded queue, with a Trainer class."""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="one loader thread reads records one after another, and each step waits at its queue",
    about="time",
    kind=r"input_bound|lock_wait|host_bound|idle_between_steps",
    culprit=r"queue|next_batch|BatchLoader|acquire|__next__|read_record",
    line=r"queue\.py|__next__|train\.py:(62|102)|acquire",
)


class RecordStore:
    """Records behind a link where every read takes a moment."""

    def __init__(self, image_size):
        self.image_size = image_size

    def read_record(self, number):
        """One image with its box."""
        import numpy as np

        time.sleep(0.0015)
        random = np.random.default_rng(number)
        image = random.random((self.image_size, self.image_size, 3), np.float32)
        return image, random.random(4, np.float32)


class BatchLoader:
    """Batches of a store, read ahead by threads into a queue."""

    def __init__(self, store, batch_size, workers):
        self.store, self.batch_size = store, batch_size
        self.ready = queue.Queue(maxsize=2 * workers)
        self.threads = [
            threading.Thread(target=self.fill, args=(number,), name=f"loader_{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self.threads:
            thread.start()

    def fill(self, number):
        import numpy as np

        while True:
            samples = [self.store.read_record(number + offset) for offset in range(self.batch_size)]
            images, boxes = zip(*samples, strict=True)
            self.ready.put((np.stack(images), np.stack(boxes)))

    def __iter__(self):
        return self

    def __next__(self):
        return self.ready.get()


def record(folder: Path, *, faulty: bool) -> dict:
    """Fit for some steps, then under the profiler for six more."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    class Detector(nn.Module):
        @nn.compact
        def __call__(self, images):
            x = nn.avg_pool(images, (2, 2), strides=(2, 2)).reshape(images.shape[0], -1)
            for units in (384, 256):
                x = nn.silu(nn.Dense(units)(x))
            return nn.sigmoid(nn.Dense(4, name="box")(x))

    class Trainer:
        def __init__(self, module, loader):
            self.module, self.loader = module, loader
            self.tx = optax.sgd(0.05)
            self.params = module.init(jax.random.key(0), jnp.zeros((1, 64, 64, 3)))
            self.opt_state = self.tx.init(self.params)
            self.update = jax.jit(self._update, donate_argnums=(0, 1))

        def _update(self, params, opt_state, images, boxes):
            def huber(params):
                return optax.huber_loss(self.module.apply(params, images), boxes).mean()

            value, grads = jax.value_and_grad(huber)(params)
            updates, opt_state = self.tx.update(grads, opt_state)
            return optax.apply_updates(params, updates), opt_state, value

        def fit(self, steps):
            seconds = []
            for step in range(steps):
                began = time.perf_counter()
                with jax.profiler.StepTraceAnnotation("train", step_num=step):
                    images, boxes = next(self.loader)
                    self.params, self.opt_state, value = self.update(
                        self.params, self.opt_state, images, boxes
                    )
                    value.block_until_ready()
                seconds.append(time.perf_counter() - began)
            return seconds

    loader = BatchLoader(RecordStore(64), batch_size=16, workers=1 if faulty else 12)
    trainer = Trainer(Detector(), loader)
    trainer.fit(3)
    seconds = trainer.fit(20)
    jax.profiler.start_trace(folder / "logs")
    trainer.fit(6)
    jax.profiler.stop_trace()
    written = [path for path in (folder / "logs").rglob("*") if path.is_file()]
    for path in written:
        if path.name.endswith("xplane.pb"):
            path.rename(folder / "worker0.xplane.pb")
        else:
            path.unlink()
    return {"median_step_seconds": float(np.median(seconds)), "steps": 6}
