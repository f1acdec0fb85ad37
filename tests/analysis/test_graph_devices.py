"""Device specifications as TensorFlow 2.21 reads them (tried with import_graph_def and a run)."""

from tests.each_row import each_row

from peakline.graph.rules_devices import device_problem

GOOD = [
    "", "/", "/cpu:0", "/CPU:0", "/gpu:*", "/cpu", "cpu:0", "gpu:0", "/tpu:1", "/custom:0",
    "/device:CPU:0", "/device:CPU:*", "/device:*:*", "/device:*:0", "/device:XLA_CPU_JIT:0",
    "/job:localhost/replica:0/task:0/device:CPU:0", "/job:*", "/job:a_1", "/job:a/job:b",
    "//cpu:0", "/cpu:0/", "/:", "/:x:y", "/task:01", "/cpu: 0", "/replica:+1", "/cpu:99999999999",
]  # fmt: skip
BAD = [
    "@node", "junk", "/junk:0", "/device:CPU", "/device:*", "/device:CPU:0:1", "/device:", "/job",
    "/task:*", "/replica:*", "/task:x", "/cpu:", "/cpu:a", "/cpu:0/gpu:1", "/cpu:0:1",
    "/device:GPU:0/stream:all", " /cpu:0", "/xla_cpu:0", "/partition:0", "/job:a:b",
]  # fmt: skip
NOWHERE = ["/job:w-x", "/job:1a", "/job:", "/job:a*", "/replica:-1", "/device:a-b:0", "/device::0"]


@each_row("device", GOOD)
def test_good(device):
    assert device_problem(device) is None


@each_row("device", BAD)
def test_refused_by_import(device):
    problem = device_problem(device)
    assert problem is not None
    assert problem.is_error is True
    assert repr(device) in problem.message


@each_row("device", NOWHERE)
def test_imported_but_never_placed(device):
    problem = device_problem(device)
    assert problem is not None
    assert problem.is_error is False
