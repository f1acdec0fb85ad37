"""Write profiles with JAX and TensorFlow, and list runs and hosts as XProf does.

Runs in the peers' environment. A request is ``{"write": LOGDIR}`` or ``{"list": LOGDIR}``; the
answer to the second has the names of the hosts by run.
"""

from types import SimpleNamespace

from serve import serve


def write(logdir: str) -> None:
    """A local JAX profile directly in the log directory, one of TensorFlow in the run "train"."""
    import jax
    import tensorflow as tf

    options = jax.profiler.ProfileOptions()
    jax.profiler.start_trace(logdir, create_perfetto_trace=True, profiler_options=options)
    jax.jit(lambda x: x @ x)(jax.numpy.ones((64, 64))).block_until_ready()
    jax.profiler.stop_trace()
    tf.profiler.experimental.start(f"{logdir}/train")
    tf.linalg.matmul(tf.ones((64, 64)), tf.ones((64, 64)))
    tf.profiler.experimental.stop()


def listed(logdir: str) -> dict[str, list[str]]:
    """The hosts of every run, by the names that XProf's server shows."""
    from xprof import profile_plugin

    flags = SimpleNamespace(master_tpu_unsecure_channel="")
    context = SimpleNamespace(logdir=logdir, data_provider=None, flags=flags)
    plugin = profile_plugin.ProfilePlugin(context)
    return {
        run: [host["hostname"] for host in plugin.host_impl(run, "trace_viewer")]
        for run in plugin.runs_imp()
    }


if __name__ == "__main__":
    serve(lambda request: listed(request["list"]) if "list" in request else write(request["write"]))
