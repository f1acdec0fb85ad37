"""Tests with limits of their device memory, for JAX: run by test_pytest_plugin_peers.py."""

import jax
import jax.numpy as jnp
import pytest


@jax.jit
def layer(weights, inputs):
    return jax.nn.relu(inputs @ weights)


@jax.jit
def pairs(rows):
    differences = jnp.sort(rows[:, None, :] - rows[None, :, :], axis=0)
    return (differences @ differences.transpose(0, 2, 1)).sum()


def keep(weights, inputs):
    return layer(weights, inputs)


@pytest.mark.limit_growth_per_step("100KB")
@pytest.mark.parametrize("leaks", [True, False], ids=["leaks", "healthy"])
def test_list(peakline_profile, leaks):
    weights, inputs = jnp.ones((256, 1024)), jnp.ones((192, 256))
    chosen = []
    for _ in peakline_profile.steps(12):
        if not leaks:
            chosen.clear()
        chosen.append(keep(weights, inputs))
        weights = weights * 0.99


@pytest.fixture
def rows():
    return jnp.ones((256, 128))


@pytest.mark.limit_device_memory("16MB")
@pytest.mark.parametrize("count", [256, 16])
def test_temporary(rows, count):
    assert float(pairs(rows[:count])) == 0


@pytest.mark.limit_device_memory(16_000_000, allocator="cpu:0", framework="jax")
class TestMethods:
    def test_temporary(self, rows):
        assert float(pairs(rows)) == 0


@pytest.mark.limit_program_memory("16MB")
@pytest.mark.parametrize("count", [256, 16])
def test_program(rows, count):
    assert float(pairs(rows[:count])) == 0


@pytest.mark.limit_program_memory("1MB")
def test_no_program():
    assert jnp is not None


@pytest.mark.limit_growth_per_step("16MB")
def test_no_steps():
    jnp.ones(3).block_until_ready()


@pytest.mark.limit_device_memory("16MB")
def test_dropped():
    base = jnp.ones((1024, 1024))
    several = [base * number for number in range(8)]
    assert len(jax.block_until_ready(several)) == 8


@pytest.mark.limit_device_memory("16MB")
def test_dropped_in_steps(peakline_profile):
    base = jnp.ones((1024, 1024))
    for number in peakline_profile.steps(8):
        jax.block_until_ready(base * number)


def test_asks(peakline_profile):
    chosen = []
    with peakline_profile.step():
        chosen.append(jnp.ones((512, 1024)))
    (peak,) = peakline_profile.memory().allocators
    assert peak.peak_bytes >= 2 << 20
    assert peakline_profile.profile.columns("steps").rows == 2
    assert peakline_profile.steps_taken == 1


@pytest.mark.limit_device_memory("1KB")
def test_fails_itself():
    assert pairs(jnp.ones((64, 64))) < 0, "its own failure"


@pytest.mark.xfail(strict=True)
@pytest.mark.limit_device_memory("1KB")
def test_expected(rows):
    assert float(pairs(rows)) == 0


@pytest.mark.limit_device_memory("1MB")
def test_profiles_itself(tmp_path):
    with jax.profiler.trace(str(tmp_path)):
        jnp.ones(3).block_until_ready()


@pytest.fixture
def profiling(tmp_path):
    with jax.profiler.trace(str(tmp_path)):
        yield


@pytest.mark.usefixtures("profiling")
@pytest.mark.limit_device_memory("1MB")
def test_profiled_already():
    jnp.ones(3).block_until_ready()
