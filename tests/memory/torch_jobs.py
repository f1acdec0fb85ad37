"""A job of PyTorch made by hand: as a trace of its profiler, and as records of its allocator."""

from tests.tables.fake import FakeReader

from peakline.tables.profile import Profile

STEP = 100
MODULE, OP, PYTHON, MARK = "python_function", "cpu_op", "python_function", "user_annotation"
TORCH = "/x/site-packages/torch"


class Trace:
    """Events of one thread, and what its allocator recorded; times in microseconds."""

    def __init__(self):
        self.events = []
        self.held = {}

    def run(self, name, begin, end, cat=OP, **args):
        self.events.append(
            {"ph": "X", "pid": 1, "tid": 1, "ts": begin, "dur": end - begin, "name": name,
             "cat": cat, "args": args}
        )  # fmt: skip

    def memory(self, ts, key, size):
        args = {
            "Addr": self._address(key), "Bytes": size, "Total Allocated": sum(self.held.values()),
            "Total Reserved": 0, "Device Type": 0, "Device Id": -1,
        }  # fmt: skip
        self.events.append(
            {"ph": "i", "s": "t", "pid": 1, "tid": 1, "ts": ts, "name": "[memory]",
             "cat": "cpu_instant_event", "args": args}
        )  # fmt: skip

    def alloc(self, ts, key, size):
        self.held[key] = size
        self.memory(ts, key, size)

    def free(self, ts, key):
        self.memory(ts, key, -self.held.pop(key))

    def _address(self, key):
        return 4096 + sum(ord(letter) * 257**place for place, letter in enumerate(key))


def training(steps=3, *, stacks=True, shapes=True, marks=True):
    """The events of ``steps`` steps of 100 us: a batch, one module, a loss, its gradients, and an
    optimizer that makes its state in the first.
    """
    trace = Trace()
    for step in range(steps):
        at, number = STEP * step, 10 * step
        if marks:
            trace.run(f"ProfilerStep#{step}", at, at + 99, MARK)
        if stacks:
            trace.run("train.py(10): train", at + 1, at + 98, PYTHON)
            trace.run("nn.Module: Net_0", at + 10, at + 30, MODULE)
            trace.run("model.py(3): forward", at + 10.1, at + 29, PYTHON)
            trace.run("nn.Module: Linear_0", at + 11, at + 20, MODULE)
        dims = {"Input Dims": [[2], [8, 4], [4, 2], []]} if shapes else {}
        trace.run("aten::randn", at + 2, at + 4)
        trace.alloc(at + 3, f"batch{step}", 512)
        if step:
            trace.free(at + 3.5, f"batch{step - 1}")
            trace.free(at + 8, f"grad{step - 1}")
        trace.run("aten::linear", at + 12, at + 18, **{"Sequence number": number})
        trace.run("aten::addmm", at + 13, at + 17, **{"Sequence number": number}, **dims)
        trace.alloc(at + 13.2, "scratch", 64)
        trace.alloc(at + 13.4, "output", 1000)
        trace.free(at + 14, "scratch")
        trace.run("aten::mse_loss", at + 31, at + 33, **{"Sequence number": number + 1})
        if step:
            trace.free(at + 31.5, f"loss{step - 1}")
        trace.alloc(at + 32, f"loss{step}", 4)
        node = "autograd::engine::evaluate_function: "
        trace.run(f"{node}MseLossBackward0", at + 40, at + 44, **{"Sequence number": number + 1})
        trace.run("aten::mse_loss_backward", at + 40.5, at + 43)
        trace.alloc(at + 41, "flow", 1000)
        trace.run(f"{node}AddmmBackward0", at + 45, at + 55, **{"Sequence number": number})
        trace.run("aten::mm", at + 45.5, at + 48)
        trace.alloc(at + 46, f"grad{step}", 800)
        trace.free(at + 50, "output")
        trace.free(at + 52, "flow")
        trace.run("Optimizer.step#SGD.step", at + 60, at + 80, MARK)
        if not step:
            trace.run("aten::zeros", at + 61, at + 63)
            trace.alloc(at + 62, "momentum", 800)
        trace.run("aten::mul", at + 65, at + 67)
        trace.alloc(at + 66, "product", 800)
        trace.free(at + 70, "product")
    return trace.events


CATEGORY = {
    "batch": "input", "output": "activation", "loss": "activation", "scratch": "temporary",
    "flow": "temporary", "grad": "gradient", "momentum": "optimizer state", "product": "temporary",
}  # fmt: skip


def keys_of(events):
    """What each allocation of a trace is called, in order of time."""
    address = {Trace()._address(f"{key}{n}"): key for key in CATEGORY for n in ("", *range(9))}
    result = [e["args"] for e in sorted(events, key=lambda e: e["ts"]) if e["name"] == "[memory]"]
    return [address[one["Addr"]] for one in result if one["Bytes"] > 0]


_CALL = ("_call_impl", f"{TORCH}/nn/modules/module.py", 1789)
_MAIN = ("main", "/home/x/train.py", 20)
STACKS = {
    "weight": [_MAIN, ("__init__", f"{TORCH}/nn/modules/linear.py", 110)],
    "batch": [_MAIN],
    "output": [_MAIN, _CALL, ("forward", "/home/x/model.py", 7)],
    "scratch": [_MAIN, _CALL, ("forward", "/home/x/model.py", 8)],
    "seed": [_MAIN, ("backward", f"{TORCH}/autograd/__init__.py", 347)],
    "grad": None,
    "flow": None,
    "momentum": [_MAIN, ("step", f"{TORCH}/optim/adam.py", 182)],
    "product": [_MAIN, ("step", f"{TORCH}/optim/adam.py", 248)],
    "cleared": [_MAIN, ("zero_grad", f"{TORCH}/optim/optimizer.py", 900)],
}
IN_SNAPSHOT = CATEGORY | {"weight": "parameter", "seed": "temporary"}


def snapshot(steps=3, *, windows=False):
    """A profile with the records of a job whose stacks have frames of Python only, as
    ``torch.cuda.memory._record_memory_history`` writes them; and what each allocation is called.
    """
    records, keys, held = [], [], {}

    def alloc(key, size, name=None):
        held[name or key] = size
        keys.append(key)
        records.append(("allocation", name or key, size, key))

    def free(name, key=None):
        records.append(("deallocation", name, held.pop(name), key))

    alloc("weight", 700)
    for step in range(steps):
        alloc("batch", 512, f"batch{step}")
        if step:
            free(f"grad{step - 1}", "cleared")
            free(f"batch{step - 1}")
        alloc("scratch", 64)
        alloc("output", 1000)
        free("scratch")
        alloc("seed", 4)
        alloc("flow", 1000)
        alloc("grad", 800, f"grad{step}")
        free("output")
        free("flow")
        free("seed")
        if not step:
            alloc("momentum", 800)
        alloc("product", 800)
        free("product")
    numbers = {key: n for n, (key, frames) in enumerate(STACKS.items()) if frames}
    names = {name: n for n, name in enumerate(dict.fromkeys(one[1] for one in records))}
    events = [
        {"time_ps": 1000 * n, "sequence": n, "allocator": "cuda:0", "activity": activity,
         "address": 1 + names[name], "allocated_bytes": size, "op": key,
         "stack_id": numbers.get(key)}
        for n, (activity, name, size, key) in enumerate(records)
    ]  # fmt: skip
    stacks = [
        {"stack_id": number, "depth": depth, "function": function, "file": _path(file, windows),
         "line": line}
        for key, number in numbers.items()
        for depth, (function, file, line) in enumerate(reversed(STACKS[key]))
    ]  # fmt: skip
    tables = {"allocator_events": events, "stacks": stacks, "segments": []}
    return Profile(FakeReader(tables).of_format("torch_snapshot")), keys


def _path(file, windows):
    return file.replace("/", "\\") if windows else file
