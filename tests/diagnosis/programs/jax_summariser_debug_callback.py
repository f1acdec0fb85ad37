"""Fine-tune a small encoder for extractive summaries, Lightning-like: a module and its fitter."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="a debug callback sends every layer's activations to a NumPy histogram in each step",
    about="time",
    kind=r"host_callback|host_bound|python_work|expensive_op|time_in_copies",
    culprit=r"callback|log_activations|histogram",
    line=r"log_activations|histogram|train\.py:(31|54)|callback",
    is_held_out=False,
)


class ActivationLog:
    """Histograms of what layers put out."""

    def __init__(self):
        self.histograms = {}

    def log_activations(self, layer, values):
        """Replace the histogram of a layer."""
        import numpy as np

        counts, edges = np.histogram(np.asarray(values), bins=64)
        self.histograms[int(layer)] = (counts, edges)


def record(folder: Path, *, faulty: bool) -> dict:
    """Fit, with three of the batches profiled."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    activation_log = ActivationLog()

    class SentenceEncoder(nn.Module):
        layers: int = 2

        @nn.compact
        def __call__(self, sentences):
            x = nn.Dense(128, name="project")(sentences)
            for layer in range(self.layers):
                x = nn.relu(nn.Dense(128, name=f"layer_{layer}")(x))
                if faulty:
                    jax.debug.callback(activation_log.log_activations, layer, x)
            return nn.Dense(1, name="keep")(x)[..., 0]

    class SummaryModule:
        def __init__(self):
            self.encoder = SentenceEncoder()

        def configure_optimizers(self):
            return optax.sgd(optax.linear_schedule(0.1, 0.01, 100))

        def training_step(self, params, batch):
            scores = self.encoder.apply(params, batch["sentences"])
            return optax.sigmoid_binary_cross_entropy(scores, batch["labels"]).mean()

        def on_batch_end(self, number, loss, log):
            if number % 10 == 9:
                log.append(float(loss))

    class Fitter:
        def __init__(self, module, batch):
            self.module, self.tx = module, module.configure_optimizers()
            self.params = module.encoder.init(jax.random.key(0), batch["sentences"])
            self.opt_state = self.tx.init(self.params)
            self.log, self.seconds = [], []

            @functools.partial(jax.jit, donate_argnums=(0, 1))
            def run(params, opt_state, batch):
                loss, grads = jax.value_and_grad(module.training_step)(params, batch)
                updates, opt_state = self.tx.update(grads, opt_state)
                return optax.apply_updates(params, updates), opt_state, loss

            self.run = run

        def fit(self, loader, first=0):
            for number, batch in enumerate(loader, first):
                began = time.perf_counter()
                with jax.profiler.StepTraceAnnotation("training_step", step_num=number):
                    out = self.run(self.params, self.opt_state, batch)
                    self.params, self.opt_state, loss = jax.block_until_ready(out)
                self.module.on_batch_end(number, loss, self.log)
                self.seconds.append(time.perf_counter() - began)

    def loader(count):
        random = np.random.default_rng(count)
        for _ in range(count):
            sentences = random.standard_normal((32, 40, 96)).astype(np.float32)
            labels = (random.random((32, 40)) < 0.2).astype(np.float32)
            yield {"sentences": jnp.asarray(sentences), "labels": labels}

    fitter = Fitter(SummaryModule(), next(loader(1)))
    fitter.fit(loader(20))
    seconds = float(np.median(fitter.seconds[2:]))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    jax.profiler.start_trace(folder / "events", profiler_options=options)
    fitter.fit(loader(3), first=20)
    jax.profiler.stop_trace()
    jax.effects_barrier()
    next((folder / "events").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "events").rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": seconds,
        "steps": 3,
        "histograms": len(activation_log.histograms),
    }
