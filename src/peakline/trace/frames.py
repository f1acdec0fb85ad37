"""Python frames that profilers record: which file and function, and whose code it is.

TensorFlow's and JAX's tracer write ``$file.py:12 function`` with the file's name alone, and
``$module function`` for what is written in C (xla/python/profiler/internal/python_hooks.cc).
PyTorch's writes ``package/file.py(12): function`` with the path below the first folder of
``sys.path``, ``<built-in ...>`` for C, and ``nn.Module: Linear_3`` for the modules that run
(torch/csrc/autograd/profiler_python.cpp). The line is the one on which the function begins.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from peakline.text import remembered

Whose = Literal["program", "framework", "library"]

_TRACER = re.compile(r"\$(?P<file>[^\s:]+\.py|<[^<>]+>):(?P<line>\d+) (?P<function>.+)", re.DOTALL)
_TRACER_C = re.compile(r"\$(?P<module>\S+) (?P<function>\S.*)", re.DOTALL)
_KINETO = re.compile(r"(?P<file>[^(]+)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_BUILT_IN = re.compile(
    r"<built-in (?:method|function) (?P<function>\w++)"
    r"(?: of (?:(?:type|module) object|(?P<of>[\w.]++)).*)?>",
    re.DOTALL,
)
EVALUATES = re.compile(r"(?i)(?:^|[^a-z])(?:eval\w*|val|valid\w*|test\w*|predict\w*|infer\w*)")
"""What functions that evaluate are called."""
_UNNAMED = frozenset(("<listcomp>", "<lambda>", "<genexpr>", "<dictcomp>", "<setcomp>"))
_MODULE = "nn.Module: "
_LONGEST = 1000
"""A name is part of a title for every line that it stands in: of longer ones it is the begin."""
_FRAMEWORKS = frozenset(
    "torch torchvision torchaudio torchdata torchgen functorch tensorflow tensorflow_core keras "
    "tf_keras jax jaxlib flax optax haiku equinox orbax chex lightning pytorch_lightning "
    "lightning_fabric accelerate transformers deepspeed apex fairscale timm diffusers peft "
    "trl ignite fastai xformers flash_attn triton ray composer detectron2 mmcv mmengine "
    "etils tensorflow_datasets bitsandbytes megatron torch_geometric torch_xla".split()
)
_LIBRARIES = frozenset(
    "numpy scipy pandas sklearn PIL cv2 matplotlib h5py absl tqdm wandb tensorboard "
    "tensorboardX IPython ipykernel google yaml requests urllib3 fsspec pyarrow numba joblib "
    "tokenizers sentencepiece safetensors einops psutil packaging pkg_resources setuptools "
    "multiprocess dill cloudpickle regex rich click six typing_extensions pydantic zmq tornado "
    "traitlets jupyter_client debugpy".split()
)
_INSTALLED = re.compile(
    r"(?:^|[\\/])(?:(?:site|dist)-packages|third_party[\\/]py)[\\/](?P<inner>.*)", re.DOTALL
)
_CELL = re.compile(r"<(?:ipython|stdin)|.*ipykernel_|<cell")
_STANDARD = re.compile(r"(?:^|[\\/])lib(?:64)?[\\/]python3[^\\/]*[\\/]|^<frozen ")


@dataclass(frozen=True)
class Frame:
    """A frame; ``file`` and ``line`` are empty and 0 for what is written in C.

    ``whose`` is ``program`` for the code of whoever runs it, ``framework`` for TensorFlow, JAX,
    PyTorch and what is built on them, ``library`` for other packages and Python's own.
    """

    file: str
    line: int
    function: str
    whose: Whose

    @property
    def title(self) -> str:
        """``load_batch (train.py:151)``."""
        function = self.function[:_LONGEST]
        name = re.split(r"[\\/]", self.file[-_LONGEST:])[-1]
        return f"{function} ({name}:{self.line})" if name else function


@remembered(1 << 16)
def frame_of(name: str) -> Frame | None:
    """The frame that an event called so is, None for any other event."""
    if name.startswith("$"):
        return _traced(name)
    if name.startswith("<built-in "):
        result = _BUILT_IN.match(name)
        if result is None:
            return Frame("", 0, name, "library")
        of = (result["of"] or "").strip(".")
        whose: Whose = "framework" if of.partition(".")[0] in _FRAMEWORKS else "library"
        return Frame("", 0, f"{of}.{result['function']}" if of else result["function"], whose)
    if ".py(" in name or name.startswith("<"):
        result = _KINETO.fullmatch(name)
        if result is not None and len(result["line"]) < 10:
            file, line = result["file"], int(result["line"])
            return Frame(file, line, result["function"], whose_file(file))
    return None


def _traced(name: str) -> Frame | None:
    result = _TRACER.fullmatch(name)
    if result is not None and len(result["line"]) < 10:
        file, function = result["file"], result["function"]
        return Frame(file, int(result["line"]), function, _whose_name(file, function))
    result = _TRACER_C.fullmatch(name)
    if result is None:
        return None
    module, function = result["module"], result["function"]
    whose: Whose = "framework" if module.partition(".")[0] in _FRAMEWORKS else "library"
    known = "" if module in {"<unknown>", "builtins"} else f"{module}."
    return Frame("", 0, f"{known}{function}", whose)


def has_name(function: str) -> bool:
    """Whether a function has a name of its own: of others the one around them says more."""
    return function not in _UNNAMED


def module_of(name: str) -> str:
    """``Linear_3`` of an event that says which module of PyTorch runs, else nothing."""
    return name.removeprefix(_MODULE) if name.startswith(_MODULE) else ""


@remembered(1 << 14)
def whose_file(path: str) -> Whose:
    """Whose code a file is, by its path: whole, or below a folder of ``sys.path``.

    What is no file of Python's (``??``, C++) is a library's.
    """
    if not path.endswith((".py", ".pyx")) and not _CELL.match(path):
        return "library"
    installed = _INSTALLED.search(path)
    if installed is None and (_STANDARD.search(path) or path == "<string>"):
        return "library"
    inner = re.split(r"[\\/]", installed["inner"] if installed else path.lstrip("./\\"))
    first = inner[0].removesuffix(".py")
    if first in _FRAMEWORKS and (installed or len(inner) > 1 or first == "torch"):
        return "framework"
    if installed is not None:
        return "library"
    # Below sys.path Python's own files and packages stand alone: threading.py, json/encoder.py.
    is_below = not re.match(r"[\\/]|[A-Za-z]:", path)
    if is_below and (first in _LIBRARIES or first in sys.stdlib_module_names):
        return "library"
    return "program"


def _whose_name(file: str, function: str) -> Whose:
    """Whose code a function is, by the name of its file alone."""
    if file.startswith("<frozen") or file == "<string>":
        return "library"
    known = _library_files().get(file)
    if known is None:
        return "program"
    for kind, names in known.functions.items():
        if function in names:
            return kind
    # A lambda's name says nothing.
    return known.others or (known.first if function.startswith("<") else "program")


@dataclass
class _File:
    """Whose a file of a name is: which ``functions`` are whose, and whose all ``others`` are, None
    where many programs have a file of that name. ``first`` is whose the first is.
    """

    first: Whose
    others: Whose | None
    functions: dict[Whose, frozenset[str]]


@cache
def _library_files() -> dict[str, _File]:
    """Whose each file is."""
    result: dict[str, _File] = {}
    whose: Whose = "framework"
    text = files("peakline.trace").joinpath("library_files.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            whose = "framework" if line == "[framework]" else "library"
        elif line and not line.startswith("#"):
            name, _, functions = line.partition(": ")
            known = result.setdefault(name, _File(whose, None, {}))
            if functions:
                known.functions[whose] = frozenset(functions.split())
            else:
                known.others = whose
    return result
