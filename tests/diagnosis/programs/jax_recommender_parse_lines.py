"""Train a click-through model from logged sessions: a training script with argparse."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each batch parses its lines of JSON in Python, within the loop",
    about="time",
    kind=r"input_bound|host_bound|python_work|idle_between_steps",
    culprit=r"parse_line|read_batch|json|loads|decode",
    line=r"parse_line|read_batch|train\.py:(32|94)",
)


def parse_args(arguments):
    """The options of the script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--buckets", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=12)
    return parser.parse_args(arguments)


def parse_line(line):
    """What one user watched, newest first, as rows of the embedding table."""
    session = json.loads(line)
    watched = [item["id"] for item in session["watched"]]
    return watched[-1:-33:-1], float(session["clicked"])


def read_batch(lines, buckets):
    """The sessions of a batch as two arrays."""
    import numpy as np

    parsed = [parse_line(line) for line in lines]
    ids = np.asarray([ids for ids, _ in parsed], np.int32) % buckets
    return ids, np.asarray([clicked for _, clicked in parsed], np.float32)


def record(folder: Path, *, faulty: bool) -> dict:
    """Run the script, its last three steps under the profiler."""
    import jax
    import numpy as np
    import optax

    args = parse_args([])
    random = np.random.default_rng(0)
    lines = []
    for user in range(1024):
        watched = [
            {"id": int(item), "seconds": round(float(item) / 7, 3), "device": "tablet"}
            for item in random.integers(0, 10**6, 160)
        ]
        lines.append(json.dumps({"user": user, "watched": watched, "clicked": user % 3 == 0}))
    table_ids, table_clicked = read_batch(lines, args.buckets)

    def init_params(key):
        first, second, third = jax.random.split(key, 3)
        return {
            "table": 0.01 * jax.random.normal(first, (args.buckets, 16)),
            "w1": 0.05 * jax.random.normal(second, (16 * 32, 384)),
            "w2": 0.05 * jax.random.normal(third, (384, 1)),
        }

    def click_loss(params, ids, label):
        x = params["table"][ids].reshape(ids.shape[0], -1)
        logit = (jax.nn.relu(x @ params["w1"]) @ params["w2"])[:, 0]
        return optax.sigmoid_binary_cross_entropy(logit, label).mean()

    optimizer = optax.sgd(0.1, momentum=0.9)

    def train_step(params, slots, ids, label):
        loss, grads = jax.value_and_grad(click_loss)(params, ids, label)
        updates, slots = optimizer.update(grads, slots)
        return optax.apply_updates(params, updates), slots, loss

    train_step = jax.jit(train_step, donate_argnames=("params", "slots"))
    params = init_params(jax.random.key(1))
    slots = optimizer.init(params)
    losses, seconds = [], []
    for step in range(args.steps):
        if step == args.steps - 3:
            jax.profiler.start_trace(str(folder / "profile"))
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train_step", step_num=step):
            chosen = random.integers(0, len(lines), args.batch_size)
            if faulty:
                ids, clicked = read_batch([lines[row] for row in chosen], args.buckets)
            else:
                ids, clicked = table_ids[chosen], table_clicked[chosen]
            params, slots, loss = train_step(params, slots, ids, clicked)
            losses.append(loss)
            jax.block_until_ready(loss)
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    for path in list((folder / "profile").rglob("*.pb")):
        path.rename(folder / "worker0.xplane.pb")
    for path in list((folder / "profile").rglob("*.gz")):
        path.unlink()
    return {
        "median_step_seconds": float(np.median(seconds[1:-3])),
        "steps": 3,
        "lines_parsed_in_a_step": args.batch_size if faulty else 0,
        "final_loss": float(losses[-1]),
    }
