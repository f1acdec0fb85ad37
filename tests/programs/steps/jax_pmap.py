"""``pmap`` over four virtual devices, which average their gradients in every step."""

from functools import partial

import jax
import jax.numpy as jnp
from account import Account, output
from in_jax import profile

STEPS, DEVICES = 8, 4


@partial(jax.pmap, axis_name="devices")
def train(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    """One step of gradient descent on every device."""
    gradient = jax.grad(lambda weights: jnp.mean((inputs @ weights) ** 2))(weights)
    return weights - 1e-3 * jax.lax.pmean(gradient, "devices")


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('StepTraceAnnotation("train", step_num=i)')
    weights = jnp.ones((DEVICES, 64, 64))
    inputs = jax.random.normal(jax.random.key(2), (DEVICES, 64, 64))
    weights = jax.block_until_ready(train(weights, inputs))
    with profile(account, file):
        for number in range(STEPS):
            mark = partial(jax.profiler.StepTraceAnnotation, "train", step_num=number)
            with account.step("train", number, mark):
                weights = jax.block_until_ready(train(weights, inputs))
    account.tell()


if __name__ == "__main__":
    main()
