"""Tests with limits of their device memory, for TensorFlow: test_pytest_plugin_peers.py."""

import pytest
import tensorflow as tf


@tf.function
def layer(weights, inputs):
    with tf.name_scope("layer"):
        return tf.nn.relu(inputs @ weights)


@tf.function
def pairs(rows):
    with tf.name_scope("distances"):
        return tf.reduce_sum(tf.square(rows[:, None, :] - rows[None, :, :]))


@pytest.mark.limit_growth_per_step("100KB")
@pytest.mark.parametrize("leaks", [True, False], ids=["leaks", "healthy"])
def test_list(peakline_profile, leaks):
    weights, inputs = tf.Variable(tf.ones((256, 1024))), tf.ones((192, 256))
    chosen = []
    for _ in peakline_profile.steps(12):
        if not leaks:
            chosen.clear()
        chosen.append(layer(weights, inputs))
        weights.assign(weights * 0.99)


@pytest.fixture
def rows():
    return tf.ones((256, 128))


@pytest.mark.limit_device_memory("16MB")
@pytest.mark.parametrize("count", [256, 16])
def test_temporary(rows, count):
    assert float(pairs(rows[:count])) == 0


@pytest.mark.limit_device_memory(
    16_000_000, allocator="bfc_cpu_allocator_for_gpu", framework="tensorflow"
)
class TestMethods:
    def test_temporary(self, rows):
        assert float(pairs(rows)) == 0


@pytest.mark.limit_growth_per_step("16MB")
def test_no_steps():
    tf.ones(3) + tf.ones(3)


def test_asks(peakline_profile):
    chosen = []
    with peakline_profile.step():
        chosen.append(tf.ones((512, 1024)))
    (peak,) = peakline_profile.memory().allocators
    assert peak.peak_bytes >= 2 << 20
    assert peakline_profile.profile.columns("steps").rows == 1
    assert peakline_profile.steps_taken == 1


@pytest.mark.limit_device_memory("1KB")
def test_fails_itself():
    assert pairs(tf.ones((64, 64))) < 0, "its own failure"


@pytest.mark.xfail(strict=True)
@pytest.mark.limit_device_memory("1KB")
def test_expected(rows):
    assert float(pairs(rows)) == 0


@pytest.mark.limit_device_memory("1MB")
def test_profiles_itself(tmp_path):
    tf.profiler.experimental.start(str(tmp_path))


@pytest.fixture
def profiling(tmp_path):
    tf.profiler.experimental.start(str(tmp_path))
    yield
    tf.profiler.experimental.stop()


@pytest.mark.usefixtures("profiling")
@pytest.mark.limit_device_memory("1MB")
def test_profiled_already():
    tf.ones(3)
