"""Two jitted functions in every step, the second waited for after the next step has begun."""

from functools import partial

import jax
import jax.numpy as jnp
from account import Account, output
from in_jax import profile

STEPS = 8


@jax.jit
def gradient(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    """What to go along."""
    return jax.grad(lambda weights: jnp.mean((inputs @ weights) ** 2))(weights)


@jax.jit
def updated(weights: jax.Array, step: jax.Array) -> jax.Array:
    """The weights after it."""
    return weights - 1e-3 * step


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('StepTraceAnnotation("train", step_num=i)')
    weights = jax.random.normal(jax.random.key(1), (128, 128))
    inputs = jax.random.normal(jax.random.key(2), (256, 128))
    weights = jax.block_until_ready(updated(weights, gradient(weights, inputs)))
    with profile(account, file):
        for number in range(STEPS):
            mark = partial(jax.profiler.StepTraceAnnotation, "train", step_num=number)
            with account.step("train", number, mark):
                weights = updated(weights, jax.block_until_ready(gradient(weights, inputs)))
        jax.block_until_ready(weights)
    account.tell()


if __name__ == "__main__":
    main()
