"""Nothing is marked: two jitted functions are called in turn, with JAX's Python tracer."""

import jax
from account import Account, output
from in_jax import profile
from jax_two_functions import gradient, updated

STEPS = 6


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account("")
    weights = jax.random.normal(jax.random.key(1), (128, 128))
    inputs = jax.random.normal(jax.random.key(2), (256, 128))
    weights = jax.block_until_ready(updated(weights, gradient(weights, inputs)))
    with profile(account, file, python=True):
        for _ in range(STEPS):
            with account.step("gradient", None):
                step = jax.block_until_ready(gradient(weights, inputs))
            with account.step("updated", None):
                weights = jax.block_until_ready(updated(weights, step))
    account.tell()


if __name__ == "__main__":
    main()
