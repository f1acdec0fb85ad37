"""Recognise birds by their calls; every number goes to a tracking server of the institute."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each step posts its metrics to the tracking server, and waits for the answer",
    about="time",
    kind=r"python_work|host_bound|idle_between_steps|host_sync|lock_wait",
    culprit=r"log_metrics|\bflush\b|getresponse|http[/.]client|\brecv|readinto|socket\.py|_read_status",
    line=r"log_metrics|\bflush\b|client\.py|socket\.py|recv_into|readinto|train\.py:(5\d|6[0-3])",
    is_held_out=True,
    round=4,
)

SERVER = """
import http.server, time

class Runs(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.012)  # the database commits
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *words): pass

server = http.server.HTTPServer(("localhost", 0), Runs)
print(server.server_port, flush=True)
server.serve_forever()
"""


class Run:
    """A run of an experiment, at the tracking server."""

    def __init__(self, port, buffer_size):
        self.connection = http.client.HTTPConnection("localhost", port)
        self.buffer_size, self.buffer, self.requests = buffer_size, [], 0

    def log_metrics(self, metrics, step):
        """Numbers of a step; sent when the buffer is full."""
        self.buffer.append({"step": step, "time": time.time(), **metrics})
        if len(self.buffer) >= self.buffer_size:
            self.flush()

    def flush(self):
        body = json.dumps(self.buffer, default=float)
        self.connection.request("POST", "/api/runs/1", body, {"Content-Type": "application/json"})
        self.connection.getresponse().read()
        self.requests += 1
        self.buffer.clear()


def record(folder: Path, *, faulty: bool) -> dict:
    """Forty steps, and ten more with the profiler on."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn
    from flax.training import train_state

    class CallNet(nn.Module):
        species: int

        @nn.compact
        def __call__(self, spectrograms):
            x = nn.relu(nn.Dense(256, name="bands")(spectrograms))
            x = nn.relu(nn.Dense(256, name="calls")(x)).max(axis=1)
            return nn.Dense(self.species, name="species")(x)

    @jax.jit
    def train_step(state, spectrograms, species):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, spectrograms)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, species)
            return losses.mean(), jnp.mean(logits.argmax(-1) == species)

        (loss, accuracy), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss, "accuracy": accuracy}

    rng = np.random.default_rng(4)
    recordings = rng.random((8, 48, 60, 64), np.float32)
    labels = rng.integers(0, 20, (8, 48), np.int32)
    net = CallNet(20)
    params = net.init(jax.random.key(1), recordings[0])["params"]
    state = train_state.TrainState.create(apply_fn=net.apply, params=params, tx=optax.sgd(0.05))
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    run = Run(int(server.stdout.readline()), buffer_size=1 if faulty else 200)
    took = []

    def fit(first, last):
        nonlocal state
        for step in range(first, last):
            began = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                state, metrics = train_step(state, recordings[step % 8], labels[step % 8])
                metrics["loss"].block_until_ready()
                run.log_metrics(metrics, step)
            took.append(time.perf_counter() - began)

    fit(0, 40)
    jax.profiler.start_trace(folder / "logs")
    fit(40, 50)
    jax.profiler.stop_trace()
    run.flush()
    server.terminate()
    server.wait()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": float(np.median(took[5:40])),
        "steps": 10,
        "requests": run.requests,
    }
