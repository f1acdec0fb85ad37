"""A jitted step with a ``lax.fori_loop`` of twenty rounds; steps count from 40."""

from functools import partial

import jax
import jax.numpy as jnp
from account import Account, output
from in_jax import profile

STEPS, ROUNDS = 8, 20


@jax.jit
def relax(state: jax.Array, weights: jax.Array) -> jax.Array:
    """Round after round the same."""
    return jax.lax.fori_loop(0, ROUNDS, lambda _, state: jnp.tanh(state @ weights), state)


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('StepTraceAnnotation("train", step_num=i)')
    state = jax.random.normal(jax.random.key(1), (64, 128))
    weights = jax.random.normal(jax.random.key(2), (128, 128))
    state = jax.block_until_ready(relax(state, weights))
    with profile(account, file):
        for number in range(40, 40 + STEPS):
            mark = partial(jax.profiler.StepTraceAnnotation, "train", step_num=number)
            with account.step("train", number, mark):
                state = jax.block_until_ready(relax(state, weights))
    account.tell()


if __name__ == "__main__":
    main()
