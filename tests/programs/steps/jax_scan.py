"""A jitted training step with a ``lax.scan`` over twelve time steps, with JAX's Python tracer."""

from functools import partial

import jax
import jax.numpy as jnp
from account import Account, output
from in_jax import profile

STEPS, LENGTH = 6, 12


@jax.jit
def train(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    """A recurrent network, unrolled by the loop, and its gradient."""

    def loss(weights: jax.Array) -> jax.Array:
        def cell(state: jax.Array, row: jax.Array) -> tuple[jax.Array, None]:
            return jnp.tanh(row + state @ weights), None

        return jnp.mean(jax.lax.scan(cell, jnp.zeros_like(inputs[0]), inputs)[0] ** 2)

    return weights - 1e-3 * jax.grad(loss)(weights)


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('StepTraceAnnotation("train", step_num=i)')
    weights = jax.random.normal(jax.random.key(1), (64, 64))
    inputs = jax.random.normal(jax.random.key(2), (LENGTH, 32, 64))
    weights = jax.block_until_ready(train(weights, inputs))
    with profile(account, file, python=True):
        for number in range(STEPS):
            mark = partial(jax.profiler.StepTraceAnnotation, "train", step_num=number)
            with account.step("train", number, mark):
                weights = jax.block_until_ready(train(weights, inputs))
    account.tell()


if __name__ == "__main__":
    main()
