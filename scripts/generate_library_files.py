"""Write `peakline/trace/library_files.txt`: the Python files of the frameworks and of libraries.

Run it with a Python that has TensorFlow, Keras, JAX, Flax, Optax, Orbax, NumPy and SciPy. JAX's and
TensorFlow's tracers give a frame by the name of its file, without a directory: this list is what
tells a program's own files from theirs.
"""

from __future__ import annotations

import ast
import importlib.util
import sysconfig
from collections.abc import Iterator
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "peakline" / "trace" / "library_files.txt"
FRAMEWORKS = ("jax", "jaxlib", "flax", "optax", "tensorflow", "keras", "orbax", "etils")
LIBRARIES = ("numpy", "scipy", "absl", "h5py", "google.protobuf")
OTHERS = frozenset(("test", "tests", "idlelib", "lib2to3", "turtledemo", "site-packages"))
EVERYDAY = frozenset(
    "__init__ agent attention augment base buffer callback callbacks checkpoint checkpointing "
    "checkpoints common config configs core data data_loader dataset datasets decoder embedding "
    "encoder env environment eval evaluate experiment functional functions generator helper "
    "helpers image images io layer layers load loader logger loss losses main memory metric "
    "metrics model models module modules network networks nn ops optim optimizer optimizers "
    "pipeline policy preprocess preprocessing profile reader replay rnn run runner sample "
    "sampler schedule scheduler schedules server state step task tasks test text tokenizer "
    "tools train trainer training transform transformer transforms update util utils vocab "
    "worker writer".split()
)
"""Files that many programs have one of: of these only the functions of libraries are theirs.
What Python has a file of as well is Python's where the function is."""
PYTHONS = frozenset(("threading",))
"""Files that a framework has too, and that are nearly always Python's own:
a thread waits there."""


def main() -> None:
    """Write the list."""
    kinds: dict[str, str] = {}
    functions: dict[str, set[str]] = {}
    every = (*_files(LIBRARIES, "library"), *_files(FRAMEWORKS, "framework"))
    own = {path.name for kind, path in every if kind == "framework"}
    for kind, path in every:
        is_everyday = path.stem in EVERYDAY
        if not is_everyday:
            kinds[path.name] = "library" if path.stem in PYTHONS else kind
        is_shared = kind == "library" and path.name in own and path.stem not in PYTHONS
        if is_everyday or is_shared:
            known = functions.setdefault(f"{kind} {path.name}", set())
            known |= _functions(path)
    lines = [
        "# The Python files of the frameworks and of libraries: made by",
        "# scripts/generate_library_files.py. After a colon stand the functions of theirs.",
    ]
    for kind in ("framework", "library"):
        lines += ["", f"[{kind}]"]
        lines += sorted(name for name, of in kinds.items() if of == kind)
        lines += [
            f"{name.split()[1]}: {' '.join(sorted(known))}"
            for name, known in sorted(functions.items())
            if name.split()[0] == kind and known
        ]
    TARGET.write_text("\n".join(lines) + "\n")


def _files(packages: tuple[str, ...], kind: str) -> Iterator[tuple[str, Path]]:
    for package in packages:
        for folder in importlib.util.find_spec(package).submodule_search_locations:
            yield from ((kind, path) for path in _python_files(Path(folder)))
    if kind == "library":
        folder = Path(sysconfig.get_paths()["stdlib"])
        yield from ((kind, path) for path in _python_files(folder))


def _python_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.py")):
        inner = path.relative_to(folder)
        if OTHERS.isdisjoint(inner.parts) and not path.stem.endswith("_test"):
            yield path


def _functions(path: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(path.read_bytes())
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


if __name__ == "__main__":
    main()
