"""REINFORCE on a toy environment: rollouts with a recurrent policy, one update for each."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="rollout and update run op by op in eager mode",
    about="time",
    kind="tiny_ops|host_bound|launch_bound|python_work|unfused_elementwise",
    culprit="MatMul|eager|FastPathExecute",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
)

HORIZON, ENVIRONMENTS, OBSERVATION, ACTIONS, HIDDEN = 4, 128, 6, 3, 128


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    init = tf.keras.initializers.GlorotUniform(seed=1)
    agent = {
        "kernel": tf.Variable(init([OBSERVATION + HIDDEN, HIDDEN])),
        "bias": tf.Variable(tf.zeros([HIDDEN])),
        "policy": tf.Variable(init([HIDDEN, ACTIONS])),
    }
    dynamics = init([OBSERVATION + ACTIONS, OBSERVATION])

    def rollout(observation):
        state = tf.zeros([ENVIRONMENTS, HIDDEN])
        log_probabilities, rewards = [], []
        for _ in range(HORIZON):
            joined = tf.concat([observation, state], 1)
            state = tf.tanh(tf.matmul(joined, agent["kernel"]) + agent["bias"])
            logits = tf.matmul(state, agent["policy"])
            action = tf.one_hot(tf.random.categorical(logits, 1)[:, 0], ACTIONS)
            log_probabilities.append(tf.reduce_sum(action * tf.nn.log_softmax(logits), 1))
            observation = tf.tanh(tf.matmul(tf.concat([observation, action], 1), dynamics))
            rewards.append(-tf.reduce_sum(observation * observation, 1))
        returns = tf.cumsum(tf.stack(rewards), reverse=True)
        return tf.stack(log_probabilities), returns - tf.reduce_mean(returns, 1, keepdims=True)

    def update(observation):
        with tf.GradientTape() as tape:
            log_probabilities, advantage = rollout(observation)
            loss = -tf.reduce_mean(log_probabilities * tf.stop_gradient(advantage))
        weights = list(agent.values())
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * gradient)
        return loss

    if not faulty:
        update = tf.function(update)
    start = tf.random.normal([ENVIRONMENTS, OBSERVATION])
    seconds = []
    for _ in range(15):
        begin = time.perf_counter()
        update(start).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for episode in range(8):
        with tf.profiler.experimental.Trace("train", step_num=episode, _r=1):
            update(start).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 8, "median_step_s": statistics.median(seconds[3:])}
