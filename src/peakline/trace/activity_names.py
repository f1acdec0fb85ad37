"""Names of events and what they mean: the words of the runtimes, one list per kind of line.

The names are those that TensorFlow, XLA, JAX, PyTorch, CUDA and ROCm give what they trace; see
docs/steps.md for what is counted as what.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

COLLECTIVE = "collective"
"""The kind of a collective that is one and does not say which."""


class Activity(IntEnum):
    """What an event says is going on.

    NOTHING explains nothing by itself: a step's marker, an annotation of a device's line, an
    instant, a line that repeats what others show.
    """

    NOTHING = 0
    COMPUTE = 1
    """A device computes."""
    COMMUNICATION = 2
    """A collective, or a message of one device or host to another."""
    DEVICE_TO_DEVICE = 3
    DEVICE_TO_HOST = 4
    HOST_TO_DEVICE = 5
    INPUT_WAIT = 6
    """A training loop waits for its next batch, or a device for its next infeed."""
    INPUT_WORK = 7
    """An input pipeline works, on whatever thread."""
    COMPILE = 8
    """A program is traced, lowered or compiled."""
    LAUNCH = 9
    """Work is handed to a device, or to a runtime."""
    WAIT = 10
    """A host thread waits for a device or another thread, or sleeps."""
    HOST_OP = 11
    """An op or a compiled program runs on the host."""
    HOST = 12
    """Anything else that a host does."""


class _Rule:
    """Names that one of ``begins`` matches from the beginning, or one of ``holds`` anywhere.

    Two expressions, since the first is looked at in one place of a name and not in each.
    """

    def __init__(self, begins: tuple[str, ...] = (), holds: tuple[str, ...] = ()) -> None:
        # Names are the file's and can be long: what is unbounded is anchored and looked at once
        # (an atomic group), so that the time grows with the length and not with its square.
        self._begins = re.compile(_either(begins)).match
        self._holds = re.compile(_either(holds)).search if holds else None

    def speaks_of(self, name: str) -> bool:
        """Whether the rule is about events called so."""
        return self._begins(name) is not None or (
            self._holds is not None and self._holds(name) is not None
        )


def _either(patterns: tuple[str, ...]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns) or "(?!)"


_COLLECTIVE = re.compile(
    r"(?i)(?P<reduce_scatter>reduce[-_ ]?scatter)"
    r"|(?P<all_reduce>all[-_ ]?reduce|cross_device_reduce)"
    r"|(?P<all_gather>all[-_ ]?gather)|(?P<all_to_all>all[-_ ]?to[-_ ]?all|alltoall)"
    r"|(?P<collective_permute>collective[-_ ]?permute)|(?P<send_recv>send[-_ ]?recv|p2p)"
    r"|(?P<broadcast>broadcast)"
)
"""Kinds of collective, in the words of XLA's opcodes, NCCL's kernels and PyTorch's records."""
_STATED = re.compile(
    r"(?i)(?<![a-z])(reduce|gather|scatter|barrier|send|recv)(?:anysource)?(?![a-z])"
    r"|monitored(barrier)"
)
"""More kinds, by words that say as much only in what is known to be a collective's name."""

_JAX_COLLECTIVE = {
    "psum": "all-reduce",
    "pmax": "all-reduce",
    "pmin": "all-reduce",
    "pmean": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "ppermute": "collective-permute",
    "all_gather": "all-gather",
    "all_to_all": "all-to-all",
}
_JAX = re.compile(rf"%?({'|'.join(_JAX_COLLECTIVE)})(?:_invariant)?(?:\.\d+)?(?: = .*)?")
_LIBRARY = re.compile(r"(?i)^(?:void )?(?:n|r|h|x|ms|one)ccl|nvshmem|rccl_|mscclKernel")
_HLO = re.compile(r"^%?([A-Za-z][A-Za-z-]*?)(-start|-done)?(?:\.\d+)*(?: = .*)?$", re.DOTALL)
"""The opcode that an instruction is named after, and which end of an asynchronous one it is."""
_HLO_COLLECTIVE = frozenset(
    (
        "all-reduce",
        "all-gather",
        "all-to-all",
        "ragged-all-to-all",
        "reduce-scatter",
        "collective-permute",
        "collective-broadcast",
        "send",
        "recv",
    )
)
_HOST_COLLECTIVE = _HLO_COLLECTIVE - {"send", "recv"}
_LONG_NUMBER = re.compile(r"([0-9])[0-9]+")
"""Names differ by their numbers most of all, and no rule looks at more than a number's first digit:
one decision is enough for all that are alike but for the rest.
"""
_LONG_NAME = 256
"""No decision on a longer name is cached, so that the cache stays small."""
_BACKEND = re.compile(r"^(?:gloo|mpi|ucc):")
_TENSORFLOW_COLLECTIVE = {
    "CollectiveReduceScatter": "reduce-scatter",
    "CollectiveReduce": "all-reduce",
    "AllReduce": "all-reduce",
    "CollectiveGather": "all-gather",
    "CollectiveAllToAll": "all-to-all",
    "CollectiveBcast": "broadcast",
    "Recv": "recv",
    "Send": "send",
}
"""What TensorFlow's ops are, by a part of their types."""
_OWN_KERNEL = re.compile(
    r"(?i)cross_device_reduce|multimem_(?:all|one_shot)|(?:all|quick)_?reduce|reduce_?scatter"
    r"|all_?gather|all_?to_?all|nvshmem|deep_ep::|\b(?:inter|intra)node::(?:dispatch|combine)\b"
)
"""Kernels that frameworks wrote themselves: of vLLM, SGLang, TensorRT-LLM, PyTorch's symmetric
memory, DeepEP."""
_FUSED = re.compile(r"triton_(?:poi|red|per|tem)_fused")
"""Kernels that Inductor made: named after all that is fused in them, which says nothing."""
_COPY = re.compile(
    r"(?i)^(?:cu|cuda|hip)?(?:memcpy|copy)[ _]?(host|h|device|d|a|p(?:eer)?)[ _]?(?:2|to|->)[ _]?"
    r"(host|h|device|d|a|p(?:eer)?)(?![a-z])|^(?:cu|cuda|hip)?memcpy([hdap])to([hdap])"
)
_COPY_ANYHOW = re.compile(r"(?i)^(?:cu|cuda|hip)?memcpy|^__amd_rocclr_copyBuffer")
_MARKER = re.compile(
    r"ProfilerStep#\d+|(?:train|test|TraceContext)(?: \d+)?|PyTorch Profiler.*|Iteration Start.*"
    r"|Record Window End"
)
_SILENT = _Rule((
    r"ThreadpoolListener::", r"Memory(?:Allocation|Deallocation)$", r"end: ",
    r"SlinkyThreadPool::Await", r"(?:tf_)?ThreadpoolListener",
))  # fmt: skip
_INPUT_WAIT = _Rule((
    r"IteratorGetNext", r"enumerate\(DataLoader\)", r"\[?DataLoader.*next",
), (
    r":(?:IteratorGetNext(?:Sync|AsOptional)?|QueueDequeue\w*)$", r"DataLoaderIter\.__next__",
    (
        r"(?:[dD]ata_?[lL]oader|iterator_ops|data_iterator|\b(?>\w*?prefetch)\w*+"
        r"|dataset_iterator)\.py(?:\(\d+\)|:\d+):? (?:__next__|_next_data|get_next|next)$"
    ),
))  # fmt: skip
_INPUT_WORK = _Rule((
    r"Iterator::", r"MakeIterator::", r"InstantiatedCapturedFunction::",
    (
        r"(?:Prefetch|ParallelMap|ParallelInterleave|MapAndBatch|ParallelBatch|Shuffle)\w*"
        r"(?:Produce|Consume)"
    ),
))  # fmt: skip
_COMPILE = _Rule((
    r"(?s:(?>.*Compiler::)(?!.*Await))", r"XLA::TPU|LSRAv2|HLO passes|DCE$", r"XlaCompile",
    r"Codegen$", r"tf\.function-graph_building$", r"(?is:(?>.*?triton).*compile)", r"ptxas",
), (
    r"backend_compile|JitCompiler|HloPassPipeline|RunHloPasses|RunBackend",
    r"(?i:\bcompile_and_load\b)",
    r"Client::Compile|::CompileToExecutable|LocalLaunchBase::Compile",
    r"trace_to_jaxpr|jaxpr_to_mlir|lower_sharding_computation|lower_jaxpr|lower_parallel_callable",
    r"GraphOptimizationPass|OptimizeFunctionGraph|MetaOptimizer|InstantiateFunction",
    r"FunctionInstantiate",
    r"torch/_(?:dynamo/convert_frame|inductor/(?:compile_fx|codecache|async_compile))\.py",
    r"_dynamo\.convert_frame|compile_fx|inductor_codecache",
    r"nvJitLink|cu(?:ModuleLoad|LinkComplete|LibraryLoad)|hipModuleLoad|cudaModuleLoad",
    r"[aA]utotun(?:e|ing)",
))  # fmt: skip
_WAIT = _Rule((
    r"Wait(?: |:|$)", r"Acquire semaphore", r"np\.asarray\(jax\.Array\)",
    r"EagerLocalExecute: __(?:inference|forward|backward)_",
    r"\$?(?:time|threading|queue|selectors|socket)\.py.* (?:sleep|wait|join|get|select|acquire)$",
    r"\$(?:\S+ )?(?:sleep|acquire|wait|select|poll|join)$",
    # With a lock; of context managers written in C no other takes any time.
    r"\$threading\.py.* (?:__enter__|_acquire_restore)$", r"\$<unknown> __enter__$",
), (
    r"(?i:synchroni[sz]e)", r"\bblock_until_ready\b|BlockHostUntil|BlockUntil|\bAwait\b|::Wait\b",
    r"\(wait for completion\)|dependency-wait",
    r"<built-in (?:method|function) (?:_?\w*sleep|acquire|wait|select|poll|join|run_backward)\b",
    r"<built-in method __enter__ of _thread\.",
    r"\btime\.sleep\b",
))  # fmt: skip
_LAUNCH = _Rule((
    r"PjitFunction|PmapFunction|ExecuteReplicated|FunctionRun$|GpuExecutable::",
    r"(?:cu|cuda|hip|hipExt|hsa|ze|sycl|neuron)\w*(?:Launch|Memcpy|Memset|Enqueue)",
    r"(?:cuda|hip|cu)Graph(?:Launch|Upload)|nrt_execute|XlaLaunch",
), (
    r"LoadedExecutable(?:::|_)Execute|::ExecuteHelper|EnqueueExecution|:XLA GPU module$",
    r"tpu::System::Execute$|EnqueueProgram|ExecuteLaunch|ExecutePrepare",
))  # fmt: skip
_HOST_COMMUNICATION = _Rule((
    r"Rendezvous", r"Wait: pending_threads", r"RecvTensor$|SendTensor$|gloo:|mpi:|ucc:",
), (
    r":(?:_(?:Host)?(?:Recv|Send)|RecvTensor|Collective\w+|Nccl\w+|XlaAllReduce)$",
))  # fmt: skip
_MARK = re.compile(r"[A-Za-z0-9_ :/#-]{4,60}|(?:dist|hvd|mpi|comm|torch\.distributed)\.\w{4,40}")
"""What a program may call a stretch of its own; no function of a file, no instruction."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TALKS = re.compile(
    r"\b(?:all ?reduce|all ?gather|reduce ?scatter|all ?to ?all|broadcast|collectives?"
    r"|grad(?:ient)?s? sync|sync global devices)\b"
)
_STANDS = re.compile(r"\b(?:wait(?:ing)?|sync|synchroni[sz]e|barrier|grad(?:ient)?s? sync)\b")
_MEETS = re.compile(
    r"(?<!opt )(?<!optimization )(?<!memory )\bbarrier(?: wait)?$|^sync global devices"
)
_HOST_OP = _Rule((
    r"[A-Za-z0-9.][A-Za-z0-9_./>-]*:[A-Z_][a-zA-Z0-9_]*$", r"ParallelFor$|aten::|torch::",
    r"autograd::engine::|\w+Backward\d*$|(?:torchvision|xformers|flash_attn|c10d?|dist)::",
), (
    r"(?:Executor|ExecutorState)::\w*Async::Done$",
))  # fmt: skip
_HOST_RULES = (
    (_SILENT, Activity.NOTHING),
    (_INPUT_WAIT, Activity.INPUT_WAIT),
    (_INPUT_WORK, Activity.INPUT_WORK),
    (_HOST_COMMUNICATION, Activity.COMMUNICATION),
    (_WAIT, Activity.WAIT),
    (_COMPILE, Activity.COMPILE),
    (_LAUNCH, Activity.LAUNCH),
    (_HOST_OP, Activity.HOST_OP),
)


def is_marker(name: str) -> bool:
    """Whether an event called so only marks that something of a step begins and ends."""
    return _MARKER.fullmatch(name) is not None


def is_barrier(name: str) -> bool:
    """Whether a program's own mark is called as a wait for a collective, or for all others."""
    if _MARK.fullmatch(name) is None:
        return False
    words = " ".join(_WORD.findall(name)).lower()
    return bool(_MEETS.search(words) or (_TALKS.search(words) and _STANDS.search(words)))


def host_activity(name: str) -> Activity:
    """What an event of a host's thread does, by its name."""
    if is_marker(name):
        return Activity.NOTHING
    if len(name) > _LONG_NAME:
        return _by_rules(name)
    return _cached(_LONG_NUMBER.sub(r"\g<1>0", name))


def _by_rules(name: str) -> Activity:
    opcode = _HLO.match(name)
    if _JAX.fullmatch(name) or (opcode and opcode[1] in _HOST_COLLECTIVE):
        return Activity.COMMUNICATION
    if is_barrier(name):
        return Activity.COMMUNICATION
    for rule, activity in _HOST_RULES:
        if rule.speaks_of(name):
            return activity
    return Activity.HOST


_cached = lru_cache(1 << 14)(_by_rules)


def copy_of(name: str) -> Activity | None:
    """The direction of a copy: ``MemcpyH2D``, ``Memcpy DtoH (Device -> Pageable)``, ...

    None where ``name`` is no copy's; a copy within the host's memory is none of a device, and one
    that does not name its direction counts as one within devices.
    """
    result = _COPY.match(name)
    if result is None:
        return Activity.DEVICE_TO_DEVICE if _COPY_ANYHOW.match(name) else None
    source, target = (side[0].lower() for side in result.groups() if side)
    if source == "h":
        return Activity.NOTHING if target == "h" else Activity.HOST_TO_DEVICE
    return Activity.DEVICE_TO_HOST if target == "h" else Activity.DEVICE_TO_DEVICE


def lacks_direction(name: str) -> bool:
    """Whether the name is that of a copy that does not say from where to where."""
    return _COPY.match(name) is None and _COPY_ANYHOW.match(name) is not None


def device_activity(name: str) -> Activity:
    """What an event of a device does, by its name: a kernel, a copy, or an HLO instruction."""
    if is_marker(name):
        return Activity.NOTHING
    if kind_of_collective(name) is not None:
        return Activity.COMMUNICATION
    copy = copy_of(name)
    if copy is not None:
        return copy
    result = _HLO.match(name)
    return (
        Activity.COMPUTE
        if result is None
        else category_activity(result[1] + (result[2] or ""), name)
    )


def category_activity(category: str, name: str) -> Activity:
    """What an op of a TPU does, by its ``hlo_category``; ``name`` is its HLO text.

    A copy that runs beside the ops (``copy-start`` to ``copy-done``) is one from or to the host
    where a layout has memory space 5, else one within the device.
    """
    plain = category.lower()
    base = plain.removesuffix("-start").removesuffix("-done")
    if base == "infeed":
        return Activity.INPUT_WAIT
    if base in ("outfeed", "host send"):
        return Activity.DEVICE_TO_HOST
    if base == "host recv":
        return Activity.HOST_TO_DEVICE
    if base in _HLO_COLLECTIVE or collective_in(plain) not in (None, "broadcast"):
        return Activity.COMMUNICATION
    if base == "copy" and plain != base:
        return _moved(name)
    return Activity.COMPUTE


def _moved(name: str) -> Activity:
    """From where to where ``(to, from, context) copy-start(...)`` moves."""
    layouts = re.findall(r"\{([^{}]*)\}", name[name.find("copy-done(") + 1 :])
    if "S(5)" in "".join(layouts[:1]):
        return Activity.DEVICE_TO_HOST
    if "S(5)" in "".join(layouts[1:2]):
        return Activity.HOST_TO_DEVICE
    return Activity.DEVICE_TO_DEVICE


def kind_of_collective(name: str) -> str | None:
    """``all-reduce``, ``all-gather``, ``barrier``, ...; None for an event that is no collective.

    COLLECTIVE where a library's kernel does not say which, ``send-recv`` where the kernel may have
    done either, or another collective by messages.
    """
    jax = _JAX.fullmatch(name)
    if jax:
        return _JAX_COLLECTIVE[jax[1]]
    hlo = _HLO.match(name)
    if hlo and hlo[1] in _HLO_COLLECTIVE:
        return hlo[1].removeprefix("ragged-").replace("collective-broadcast", "broadcast")
    if name.startswith("barrier-cores"):
        return "barrier"
    is_own = _OWN_KERNEL.search(name) is not None and _FUSED.match(name) is None
    if is_own or _LIBRARY.search(name) or _BACKEND.match(name):
        return stated_collective(name) or COLLECTIVE
    if _HOST_COMMUNICATION.speaks_of(name):
        for word, kind in _TENSORFLOW_COLLECTIVE.items():
            # A node may be called after what it passes on: CollectiveReduceV2_1/_6:_Send.
            if word in name.rpartition(":")[2]:
                return kind
    return None


def collective_in(text: str) -> str | None:
    """The kind of collective that ``text`` (a kernel's name, a record's label) speaks of."""
    result = _COLLECTIVE.search(text)
    return result.lastgroup.replace("_", "-") if result and result.lastgroup else None


def stated_collective(text: str) -> str | None:
    """As `collective_in`, of what is known to name a collective: also ``send``, ``barrier``, ..."""
    result = collective_in(text)
    if result is None and (word := _STATED.search(text)):
        return (word[1] or word[2]).lower()
    return result
