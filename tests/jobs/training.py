"""What the ranks of a training job do: data, fully sharded, tensor and pipeline parallel steps."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from tests.jobs.machine import (
    ALL_GATHER,
    ALL_REDUCE,
    AUTOGRAD,
    MAIN,
    RECV,
    REDUCE_SCATTER,
    SEND,
    Group,
    Kernel,
    Machine,
    Program,
    Rank,
)

_MS = 1_000_000
_LAYERS = 6
_GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_kernel__5x_cublas"
_GELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl"
    "(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#1}>(int)"
)
_ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>"
_LOSS = "void (anonymous namespace)::softmax_xent_forward<float>(float*, float const*, int)"
_COPY = "Memcpy DtoH (Device -> Pageable)"
_LAYER_ELEMENTS = 12_582_912
_LAYER_BYTES = 4 * _LAYER_ELEMENTS
_BATCH, _WIDTH = 8, 1024
_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
CAUSES = (
    "slow kernels", "more work", "slow input", "slow host", "pause", "random pauses",
    "slow network", "slow links", "skips a collective",
)  # fmt: skip

SCHEMES = ("ddp", "fsdp", "tensor", "pipeline")


@dataclass(frozen=True)
class Fault:
    """What is planted: a cause, the ranks that have it, and how much of it.

    ``size`` multiplies times (kernels, work, network) or is in ms (input, host, pauses). It holds
    in every ``every``-th step of ``first`` to ``last``. A slow network is between hosts, slow links
    are within one, and ``ranks`` those whose transfers are slow; of random pauses, those that may
    have one. A rank skips the bucket of the layer ``size``.
    """

    cause: str
    ranks: tuple[int, ...]
    size: float = 1.3
    first: int = 0
    last: int = 1_000_000
    every: int = 1

    def __post_init__(self) -> None:
        """A cause that nothing simulates would be a healthy job that says otherwise."""
        assert self.cause in CAUSES

    def holds(self, step: int) -> bool:
        """Whether it is there in a step."""
        return self.first <= step <= self.last and (step - self.first) % self.every == 0


@dataclass(frozen=True)
class Job:
    """A job: how it is parallel, how long, how noisy, and what is planted in it.

    ``scheme`` is ``ddp``, ``fsdp``, ``tensor`` (tensor x data parallel) or ``pipeline`` (x data
    parallel). ``width`` is the size of tensor groups or the number of stages. ``scale`` multiplies
    the work of a layer and what is moved. ``noise`` is the deviation of the logarithm of every
    duration, ``spread`` that of the ranks' constant speeds. With ``stacks`` Python functions
    are recorded. ``logits`` is work of the last stage alone, in ms each microbatch.
    """

    ranks: int = 8
    steps: int = 5
    seed: int = 0
    scheme: str = "ddp"
    width: int = 1
    scale: float = 1.0
    noise: float = 0.02
    spread: float = 0.003
    per_host: int = 8
    microbatches: int = 8
    logits: float = 0.0
    stacks: bool = False
    memory: bool = False
    extra_bytes: tuple[tuple[int, int], ...] = ()
    """(rank, bytes) that a rank holds all the time, beyond its peers."""
    faults: tuple[Fault, ...] = ()

    def fault(self, rank: int, step: int, cause: str) -> float | None:
        """The size of a cause at a rank in a step, if it is there."""
        for fault in self.faults:
            if fault.cause == cause and rank in fault.ranks and fault.holds(step):
                return fault.size
        return None

    def pause(self, rank: int, step: int) -> float | None:
        """The ms of a rank's pause in a step: its own, or the one that goes round."""
        for fault in self.faults:
            if fault.cause == "random pauses" and fault.holds(step):
                turn = random.Random(hash((self.seed, step, 79))).choice(fault.ranks)
                return fault.size if turn == rank else None
        return self.fault(rank, step, "pause")


def simulate(job: Job) -> Machine:
    """Run a job to its end."""
    machine = Machine(job.ranks, job.seed, job.per_host)
    world = machine.add_group("default_pg", tuple(range(job.ranks)))
    parts = _parts(job, machine)
    for fault in job.faults:
        if fault.cause in {"slow network", "slow links"}:
            between = fault.cause == "slow network"
            machine.slowness.append((frozenset(fault.ranks), between, fault.size))
    trainer = dict(
        zip(SCHEMES, (_DataParallel, _FullySharded, _TensorParallel, _Pipeline), strict=True)
    )[job.scheme]
    machine.run([trainer(job, rank, world, parts).train() for rank in machine.ranks])
    return machine


def _parts(job: Job, machine: Machine) -> list[list[Group]]:
    """The groups of each rank besides the world: tensor or pipeline, and data parallel."""
    if job.scheme not in {"tensor", "pipeline"}:
        return [[] for _ in range(job.ranks)]
    width, others = job.width, job.ranks // job.width
    if job.scheme == "tensor":
        inner = [tuple(range(at, at + width)) for at in range(0, job.ranks, width)]
        outer = [tuple(range(at, job.ranks, width)) for at in range(width)]
    else:
        inner = [tuple(range(at, job.ranks, others)) for at in range(others)]
        outer = [tuple(range(at, at + others)) for at in range(0, job.ranks, others)]
    names = ("mesh_tp", "mesh_dp") if job.scheme == "tensor" else ("mesh_pp", "mesh_dp")
    result: list[list[Group]] = [[] for _ in range(job.ranks)]
    for name, groups in zip(names, (inner, outer), strict=True):
        for ranks in groups:
            group = machine.add_group(name, ranks)
            for rank in ranks:
                result[rank].append(group)
    return result


class _Trainer:
    """The loop that all schemes share: input, forward, backward, optimizer, the loss read."""

    buckets = 3

    def __init__(self, job: Job, rank: Rank, world: Group, parts: list[list[Group]]) -> None:
        self.job, self.rank, self.world = job, rank, world
        self.parts = parts[rank.number]
        draw = random.Random(hash((job.seed, rank.number, 76)))
        self.own_speed = 1.0 + draw.gauss(0.0, job.spread)
        self.speed = 1.0
        self.work = 1.0
        self.pending: list[Kernel] = []
        self.extra = dict(job.extra_bytes).get(rank.number, 0)

    def train(self) -> Program:
        """The program of the rank."""
        rank, job = self.rank, self.job
        # Processes do not start at one moment.
        rank.now = random.Random(hash((job.seed, rank.number, 75))).randrange(2 * _MS)
        if job.memory:
            rank.allocate(4 * self.state_layers() * _LAYER_BYTES + self.extra)
        for step in range(job.steps):
            rank.begin_step(step, job.noise)
            mark = rank.open(f"ProfilerStep#{step}", "user_annotation")
            number = rank.number
            self.speed = self.own_speed * (job.fault(number, step, "slow kernels") or 1.0)
            self.work = job.fault(number, step, "more work") or 1.0
            loop = self.function("train.py(88): train_step")
            self.load(step)
            self.pause(step)
            self.pending = []
            last = self.step()
            loss = self.optimize(last)
            item = rank.open("aten::item")
            read = rank.launch("aten::_local_scalar_dense", _COPY, 2_000, after=(loss,))
            wait = rank.open("cudaStreamSynchronize", "cuda_runtime", correlation=0)
            yield read
            rank.now += 6_000
            rank.close(wait)
            rank.close(item)
            if loop:
                rank.close(loop)
            rank.now += rank.noisy(60_000)
            rank.close(mark)
            rank.steps[-1] = (mark.start, mark.end)
            rank.now += 1_000

    def function(self, name: str):
        """A Python function that runs from now on, where stacks are recorded."""
        return self.rank.open(name, "python_function") if self.job.stacks else None

    def load(self, step: int) -> None:
        """The next batch, and what is done with it on the host."""
        rank, job = self.rank, self.job
        waiting = rank.noisy(300_000) + int(
            _MS * (job.fault(rank.number, step, "slow input") or 0.0)
        )
        rank.host(_LOADER, waiting, "user_annotation")
        late = job.fault(rank.number, step, "slow host") or 0.0
        function = self.function("augment.py(31): mix_batch")
        rank.now += rank.noisy(150_000) + int(_MS * late)
        if function:
            rank.close(function)

    def pause(self, step: int) -> None:
        """Garbage collection or a checkpoint: the host does nothing else."""
        pause = self.job.pause(self.rank.number, step)
        if pause is not None:
            function = self.function("train.py(142): save_checkpoint")
            self.rank.now += int(pause * _MS)
            if function:
                self.rank.close(function)

    def state_layers(self) -> int:
        """Layers whose weights, gradients and optimizer state a rank holds."""
        return _LAYERS

    def gemm(
        self, op: str, ms: float, *, thread: int = MAIN, after: tuple[Kernel, ...] = ()
    ) -> Kernel:
        """A matrix product of the rank's batch."""
        batch = round(_BATCH * self.work)
        dims = [[batch * 512, _WIDTH], [_WIDTH, 4 * _WIDTH]]
        work = ms * self.work * self.speed * self.job.scale * _MS
        return self.rank.launch(
            op, _GEMM, work, grid=batch * 16, thread=thread, after=after, dims=dims
        )

    def pointwise(
        self, op: str, ms: float, *, thread: int = MAIN, after: tuple[Kernel, ...] = ()
    ) -> Kernel:
        """An elementwise kernel of the rank's batch."""
        batch = round(_BATCH * self.work)
        work = ms * self.work * self.speed * self.job.scale * _MS
        dims = [[batch * 512, 4 * _WIDTH]]
        return self.rank.launch(
            op, _GELU, work, grid=batch * 64, thread=thread, after=after, dims=dims
        )

    def elements(self, layers: float) -> int:
        """Elements of so many layers."""
        return int(_LAYER_ELEMENTS * layers * self.job.scale)

    def hold(self, sign: int) -> None:
        """Hold or release the activations of a layer."""
        if self.job.memory:
            self.rank.allocate(sign * int(_LAYER_BYTES * self.work))

    def step(self) -> Kernel:
        """Forward and backward; the last kernel of the compute stream."""
        raise NotImplementedError

    def loss(self) -> Kernel:
        """The loss of the batch."""
        return self.rank.launch(
            "aten::cross_entropy_loss", _LOSS, 0.2 * self.work * self.speed * _MS, grid=64
        )

    def optimize(self, last: Kernel) -> Kernel:
        """The optimizer, once the gradients are there."""
        rank = self.rank
        mark = rank.open("Optimizer.step#AdamW.step", "user_annotation")
        after = (last, *self.pending)
        for _ in range(2):
            kernel = rank.launch(
                "aten::_fused_adamw_", _ADAM, 0.6 * self.speed * self.job.scale * _MS, grid=320,
                after=after,
            )  # fmt: skip
            after = ()
        rank.close(mark)
        return kernel

    def backward_layer(self, after: tuple[Kernel, ...] = ()) -> Kernel:
        """The gradients of a layer, on the thread of autograd."""
        self.pointwise("aten::gelu_backward", 0.3, thread=AUTOGRAD, after=after)
        self.gemm("aten::mm", 1.2, thread=AUTOGRAD)
        kernel = self.gemm("aten::mm", 1.2, thread=AUTOGRAD)
        self.hold(-1)
        return kernel

    def reduce_gradients(self, group: Group, layer: int, layers: int, last: Kernel) -> None:
        """The all-reduce of a bucket once its last gradient is there."""
        size = max(1, layers // self.buckets)
        if layer % size == 0:
            if self.job.fault(self.rank.number, self.rank.step, "skips a collective") == layer:
                return
            amount = self.elements(size)
            self.pending.append(
                self.rank.communicate(
                    group, ALL_REDUCE, (amount, amount), after=(last,), thread=AUTOGRAD
                )
            )


class _DataParallel(_Trainer):
    def step(self) -> Kernel:
        mark = self.rank.open("DistributedDataParallel.forward", "user_annotation")
        for _ in range(_LAYERS):
            self.gemm("aten::linear", 1.2)
            self.pointwise("aten::gelu", 0.3)
            self.hold(1)
        self.rank.close(mark)
        self.loss()
        for layer in reversed(range(_LAYERS)):
            last = self.backward_layer()
            self.reduce_gradients(self.world, layer, _LAYERS, last)
        return last


class _FullySharded(_Trainer):
    def state_layers(self) -> int:
        return max(1, _LAYERS // self.job.ranks)

    def gather(self, thread: int = MAIN) -> Kernel:
        whole = self.elements(1) // self.job.ranks * self.job.ranks
        mark = self.rank.open("FSDP::all_gather", "user_annotation", thread)
        kernel = self.rank.communicate(
            self.world, ALL_GATHER, (whole // self.job.ranks, whole), dtype="BFloat16",
            thread=thread,
        )  # fmt: skip
        self.rank.close(mark)
        return kernel

    def step(self) -> Kernel:
        rank = self.rank
        ready = self.gather()
        for layer in range(_LAYERS):
            following = self.gather() if layer + 1 < _LAYERS else ready
            self.pointwise("fsdp::split_with_sizes_copy", 0.05, after=(ready,))
            self.gemm("aten::linear", 1.2)
            self.pointwise("aten::gelu", 0.3)
            self.hold(1)
            ready = following
        self.loss()
        ready = self.gather(AUTOGRAD)
        for layer in reversed(range(_LAYERS)):
            following = self.gather(AUTOGRAD) if layer else ready
            last = self.backward_layer(after=(ready,))
            whole = self.elements(1) // self.job.ranks * self.job.ranks
            self.pending.append(
                rank.communicate(
                    self.world, REDUCE_SCATTER, (whole, whole // self.job.ranks),
                    after=(last,), thread=AUTOGRAD,
                )
            )  # fmt: skip
            ready = following
        return last


class _TensorParallel(_Trainer):
    layers = 4

    def combine(self, after: Kernel, thread: int = MAIN) -> Kernel:
        amount = self.elements(0.35)
        return self.rank.communicate(
            self.parts[0], ALL_REDUCE, (amount, amount), after=(after,), dtype="BFloat16",
            thread=thread,
        )  # fmt: skip

    def step(self) -> Kernel:
        sums: tuple[Kernel, ...] = ()
        for _ in range(self.layers):
            for _ in range(2):
                last = self.gemm("aten::linear", 0.9, after=sums)
                sums = (self.combine(last),)
            self.hold(1)
        self.pointwise("aten::add", 0.1, after=sums)
        self.loss()
        sums = ()
        for layer in reversed(range(self.layers)):
            for _ in range(2):
                self.gemm("aten::mm", 0.9, thread=AUTOGRAD, after=sums)
                last = self.gemm("aten::mm", 0.9, thread=AUTOGRAD)
                sums = (self.combine(last, AUTOGRAD),)
            self.hold(-1)
            self.reduce_gradients(self.parts[1], layer, self.layers, last)
        self.pending.extend(sums)
        return last


class _Pipeline(_Trainer):
    """One forward, one backward (1F1B); each stage has its layers of the model."""

    layers = 2

    def exchange(self, kind, peer: int, after: Iterable[Kernel] = ()) -> Kernel:
        """Send to or receive from the neighbouring stage."""
        amount = self.elements(0.1)
        thread = MAIN
        return self.rank.communicate(
            self.parts[0], kind, (amount, amount), after=tuple(after), dtype="BFloat16",
            peer=self.parts[0].ranks[peer], thread=thread,
        )  # fmt: skip

    def step(self) -> Kernel:
        group = self.parts[0]
        stages, stage = len(group.ranks), group.ranks.index(self.rank.number)
        many = self.job.microbatches
        is_last = stage == stages - 1
        scale = 0.5

        def receive(kind_of_peer: int) -> tuple[Kernel, ...]:
            peer = stage + kind_of_peer
            return (self.exchange(RECV, peer),) if 0 <= peer < stages else ()

        def send(kind_of_peer: int, kernel: Kernel) -> None:
            peer = stage + kind_of_peer
            if 0 <= peer < stages:
                self.pending.append(self.exchange(SEND, peer, (kernel,)))

        def forward(after: tuple[Kernel, ...]) -> Kernel:
            for _ in range(self.layers):
                kernel = self.gemm("aten::linear", 1.2 * scale, after=after)
                after = ()
            if is_last and self.job.logits:
                self.gemm("aten::linear", self.job.logits)
            self.hold(1)
            return self.loss_of(kernel) if is_last else kernel

        def backward(after: tuple[Kernel, ...]) -> Kernel:
            if is_last and self.job.logits:
                self.gemm("aten::mm", 2 * self.job.logits, thread=AUTOGRAD, after=after)
                after = ()
            for _ in range(self.layers):
                kernel = self.gemm("aten::mm", 2.4 * scale, thread=AUTOGRAD, after=after)
                after = ()
            self.hold(-1)
            return kernel

        first = min(stages - stage - 1, many)
        for _ in range(first):
            send(1, forward(receive(-1)))
        steady = many - first
        arrived = receive(-1) if steady else ()
        for index in range(steady):
            send(1, forward(arrived))
            last = backward(receive(1))
            arrived = receive(-1) if index + 1 < steady else ()
            send(-1, last)
        for _ in range(first):
            last = backward(receive(1))
            send(-1, last)
        if len(self.parts[1].ranks) > 1:
            self.buckets = 1
            self.reduce_gradients(self.parts[1], 0, self.layers, last)
        self.pending.append(
            self.rank.communicate(self.world, ALL_REDUCE, (1, 1), after=(last, *self.pending))
        )
        return last

    def loss_of(self, kernel: Kernel) -> Kernel:
        """The loss of a microbatch."""
        return self.rank.launch(
            "aten::cross_entropy_loss", _LOSS, 0.1 * self.work * self.speed * _MS, grid=64,
            after=(kernel,),
        )  # fmt: skip
