"""Random XSpaces of model servers: requests, the batches that serve them, the devices of these.

What the real software leaves open is avoided: no two requests or batches are equally long, all that
a batch serves is of one model, and no time is zero.
"""

from __future__ import annotations

import random

from peakline.schema import XSpace
from reference.xspace_builder import LineBuilder, Ref, SpaceBuilder, Uint

US = 10**6
_BATCH_CONTEXT, _QUEUE = 9, 0
STYLES = ("session", "graph", "batching", "tfrt", "serving", "root", "server")


class RandomServer:
    """A server in the making: ``style`` is how it marks its requests."""

    def __init__(self, seed: int, style: str, *, requests: int, batching: bool) -> None:
        self.rng = random.Random(f"{seed} {style}")
        self.builder, self.style, self.batching = SpaceBuilder(), style, batching
        base = self.rng.choice([5, 1_700_000_000_000_000_000])
        host = self.builder.host()
        self.front, self.back = host.line("front", base), host.line("back", base)
        self.other = host.line("other", base)
        self.base = base
        self.core = self.builder.plane("/device:TPU:0").line("XLA Modules", base)
        self.runs = 0
        self.lengths: set[int] = set()
        models = ["m:1", "m:2", "other"][: self.rng.randint(1, 3)]
        self.models = models if self.rng.random() < 0.8 else [""]
        at, batch = 10 * US, 0
        number = 0
        while number < requests:
            count = min(self.rng.randint(1, 4) if batching else 1, requests - number)
            at = self._serve(at, count, batch)
            number, batch = number + count, batch + 1
        self._settings()

    @property
    def space(self) -> XSpace:
        """The message."""
        return self.builder.space

    def _length(self, about_us: int) -> int:
        """A length that no other has."""
        while True:
            length = self.rng.randint(about_us * US // 2, about_us * US)
            if length not in self.lengths:
                self.lengths.add(length)
                return length

    def _serve(self, at: int, count: int, batch: int) -> int:
        """Requests that one batch serves; returns when the last is over."""
        rng, model = self.rng, self.rng.choice(self.models)
        begin = at
        for _ in range(count):
            length = self._length(200)
            self._request(self.front, begin, length, batch, model)
            begin += length + rng.randint(1, 20) * US
        if not self.batching:
            self._work(self.front, at + 20 * US)
            return begin + 50 * US
        start = begin + rng.randint(1, 9) * US
        length = self._length(900)
        name = rng.choice(["ProcessBatch", "OrbaxServing::ProcessBatch"])
        stats: list[tuple[str, object]] = [("_ct", _BATCH_CONTEXT), ("_c", batch)]
        if name.startswith("Orbax"):
            stats.append(("_r", 2))
        self.back.event(name, start, length, stats)
        if rng.random() < 0.9:
            padded = {
                "padding_amount": rng.randint(0, 3),
                "batch_size_after_padding": rng.choice([4, 8, 16]),
            }
            name = rng.choice(["ConcatInputTensors", "MergeInputTensors"])
            self.back.event(name, start + US, US, padded)
        if self.style not in {"session", "graph"}:
            self.back.event("SessionRun", start + 5 * US, length - 9 * US, _model(rng, model))
        self._work(self.back, start + 6 * US)
        return start + length + 50 * US

    def _request(self, line: LineBuilder, at: int, length: int, batch: int, model: str) -> None:
        rng = self.rng
        stats: list[tuple[str, object]] = []
        names = {
            "session": "SessionRun", "graph": "RunGraph", "batching": "BatchingSessionRun",
            "tfrt": "TfrtModelRun", "serving": "ServingModelRun", "root": "Predict",
            "server": "ModelServerRequest_predict",
        }  # fmt: skip
        if self.style in {"session", "tfrt", "serving", "root"}:
            stats += _model(rng, model)
        if self.style == "server":
            stats.append(("_r", rng.choice([1, -1])))
        elif self.style == "root":
            stats.append(("_r", -1))
        elif self.style != "batching":
            stats.append(("_r", 1))
        line.event(names[self.style], at, length, stats)
        if self.batching:
            scheduled: list[tuple[str, object]] = [("_pt", _BATCH_CONTEXT), ("_p", batch)]
            if rng.random() < 0.8:
                scheduled.append(("batching_input_task_size", rng.randint(1, 9)))
            name = rng.choice(["ScheduleWithSplit", "ScheduleWithoutSplit", "ASBSQueue::Schedule"])
            line.event(name, at + 2 * US, US, scheduled)

    def _work(self, line: LineBuilder, at: int) -> None:
        """What the runtime of a TPU does for a few runs, of some µs each."""
        rng = self.rng
        for _ in range(rng.choice([0, 1, 1, 2])):
            if rng.random() < 0.8:
                name = rng.choice(["tpu::System::Execute", "TPUPartitionedCallOp-ExecuteLocal"])
                line.event(name, at, US // 2)
            at += rng.randint(1, 3) * US
            name = rng.choice(["TransferH2DRequest", "WriteHbm", "TransferPreprocessedH2DRequest"])
            line.event(name, at, rng.choice([US, 0, 2 * US]))
            at += 3 * US
            ordinals = {"queue_id": _QUEUE, "device_ordinal": 0, "core_type": 0}
            line.event("DoEnqueueProgram", at, US, {"run_id": self.runs, **ordinals})
            at += 2 * US
            length = rng.randint(1, 9) * US
            program = rng.choice([77, 78])
            own = {"program_id": Uint(program)} if rng.random() < 0.5 else {}
            self.core.event(
                f"jit_f({program})", at, length, {"run_id": self.runs, **ordinals, **own}
            )
            self.runs += 1
            at += length + US
            line.event(rng.choice(["ReadHbm", "TransferD2HRequest"]), at - 2 * US, 3 * US)
            at += 2 * US
            if rng.random() < 0.5:
                line.event("CompleteCallbacks", at, US // 4)
            if rng.random() < 0.5:
                tensor = {"shape": "f32[2]", "layout": Ref("{0}")}
                line.event("Linearize", at + US, rng.randint(1, US), tensor)
            at += 3 * US

    def _settings(self) -> None:
        if self.rng.random() < 0.5:
            return
        line = self.builder.plane("/host:tfstreamz").line("metrics", self.base)
        prefix, labels = "/tensorflow/serving/batching/", "{model_name=m, op_name=op}"
        for number in range(2):
            line.event("snapshot", 100 + number, 1, {
                f"{prefix}num_batch_threads{labels}": 3 + number,
                f"{prefix}max_batch_size{labels}": 64,
                f"{prefix}allowed_batch_sizes{labels}": "1,2,4",
            })  # fmt: skip


def _model(rng: random.Random, model: str) -> list[tuple[str, object]]:
    return [("model_id", rng.choice([model, Ref(model)]))] if model else []
