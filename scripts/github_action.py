"""What the two steps of action.yml do: ``install`` and ``check``, with the inputs as ``INPUT_*``.

Both run with ``python -I``: the working directory is the repository whose profile is checked, and
nothing of it may be imported or be taken for an option. ``install`` runs before Peakline is there,
so it needs Python's own modules alone; so does ``check``, which runs the verb.

Every step that fails is a failure, and nothing but limits that were judged passes. No message
repeats an input: what it holds may be a command for the runner.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
"""Of the action; it may be a folder of the repository that is checked, and is only read."""
SOURCES = (
    "LICENSE", "MANIFEST.in", "README.md", "buildtools", "pyproject.toml", "setup.py", "src",
)  # fmt: skip
"""What the package is built of, as in the Dockerfile."""
WITH_VALUE = frozenset(
    "max-peak max-growth-per-step max-fragmentation max-program-peak max-limit max-step-time"
    " max-p95-step-time max-input-wait max-compile max-idle baseline tolerance allocator config"
    " session host rank max-unpacked".split()
)
FLAGS = frozenset({"no-config", "strict"})
"""What ``limits`` may hold of the options of `peakline check`: which limits, and of what. None of
them ends the verb before it has judged, prints something else or writes a file."""
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_COULD_NOT = 2
_NO = 1


class RefusedError(Exception):
    """Why an input is not taken, without what it holds."""


def place() -> Path:
    """The folder of what is installed, in the one that the runner empties after each job."""
    return Path(os.environ["RUNNER_TEMP"]) / "peakline"


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    windows = environment / "Scripts" / "python.exe"
    return windows if os.name == "nt" else environment / "bin" / "python"


def install() -> int:
    """Make an environment of Peakline's own, with what the locks name and nothing else.

    A second use in the same job finds it.
    """
    folder, python = place(), python_of(place())
    stamp, made = folder / "made", f"{ROOT}\n{sys.executable}\n{sys.version}\n"
    if stamp.is_file() and stamp.read_text("utf-8") == made:
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    # Options of pip and variables may name files of the working directory.
    work = Path(tempfile.mkdtemp(dir=os.environ["RUNNER_TEMP"], prefix="peakline-"))
    try:
        _run(work, sys.executable, "-I", "-m", "venv", str(folder))
        pip = (str(python), "-I", "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
        # A package without a wheel would be built with whatever its build system brings.
        locked = (*pip, "--require-hashes", "--only-binary", ":all:")
        for name in ("run", "build"):
            _run(work, *locked, "--requirement", str(ROOT / "requirements" / f"{name}.lock"))
        source = work / "source"
        source.mkdir()
        for name in SOURCES:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / name)
            else:
                shutil.copy(ROOT / name, source)
        if _needs_compiler(work, python, source):
            _run(work, *locked, "--requirement", str(ROOT / "requirements/compiler.lock"))
        _run(work, *pip, "--no-deps", "--no-index", "--no-build-isolation", str(source))
        _run(work, str(python), "-I", "-m", "peakline", "--version")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    stamp.write_text(made, "utf-8")
    return 0


def _needs_compiler(work: Path, python: Path, source: Path) -> bool:
    code = "import sys; sys.path.append(sys.argv[1]); import kernels; print(kernels.needs_zig())"
    words = [str(python), "-I", "-c", code, str(source / "buildtools")]
    done = subprocess.run(words, cwd=work, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip() == "True"


def _run(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, check=True)


def check() -> int:
    """Run ``peakline check``, and write the outputs; the exit code of the step."""
    passed, judged, code, sarif = False, 0, _COULD_NOT, ""
    try:
        given = inputs()
        makes = given["update-baseline"] == "true" and not os.path.lexists(given["baseline"])
        words = list(words_of(given))
        with tempfile.TemporaryDirectory(dir=os.environ["RUNNER_TEMP"]) as folder:
            # Written where the verb came to its end, and says how many limits it judged.
            outcome = Path(given["junit"] or Path(folder) / "outcome.xml")
            before = _identity(outcome)
            command = [sys.executable, "-I", "-m", "peakline", "check", f"--junit={outcome}"]
            done = subprocess.run([*command, *words], stdin=subprocess.DEVNULL, check=False)
            code = done.returncode
            if code in {0, _NO} and _identity(outcome) not in {before, None}:
                judged, failed = _counts(outcome)
                passed = code == 0 and judged > 0 and not failed
                sarif = given["sarif"]
            if code == 0 and not (passed or makes):
                print("::error::No limit was judged: nothing passes.", flush=True)
                code = _NO
    except RefusedError as error:
        print(f"::error::{error}", flush=True)
    finally:
        lines = [f"passed={'true' if passed else 'false'}", f"limits={judged}"]
        lines += [f"sarif={sarif}"] if sarif else []
        with Path(os.environ["GITHUB_OUTPUT"]).open("ab") as file:
            file.write(os.fsencode("".join(f"{line}\n" for line in lines)))
    return code


def inputs() -> Mapping[str, str]:
    """By name; raises RefusedError for one that cannot be what it should."""
    named = "path limits baseline update-baseline tolerance junit sarif summary annotations".split()
    result = {name: os.environ[f"INPUT_{name.replace('-', '_').upper()}"] for name in named}
    for name, value in result.items():
        if name != "limits" and _CONTROL.search(value):
            raise RefusedError(f"The input {name} holds a line break or a control character.")
    for name in ("update-baseline", "summary", "annotations"):
        if result[name] not in {"true", "false"}:
            raise RefusedError(f"The input {name} is neither true nor false.")
    if result["path"] in {"", "-"}:
        raise RefusedError("The input path names no profile.")
    return result


def words_of(given: Mapping[str, str]) -> Iterator[str]:
    """What ``peakline check`` is given: no value can be taken for an option."""
    yield from limits_of(given["limits"])
    for name in ("baseline", "tolerance", "sarif"):
        if given[name]:
            yield f"--{name}={given[name]}"
    if given["update-baseline"] == "true":
        yield "--update-baseline"
    if given["summary"] == "true":
        yield f"--summary={os.environ['GITHUB_STEP_SUMMARY']}"
    if given["annotations"] == "true":
        yield "--annotations=github"
    yield from ("--", given["path"])


def limits_of(text: str) -> Iterator[str]:
    """The options in ``limits``, each as one word. Quotes count as in a shell, and nothing more.

    Raises RefusedError for what is no option of a limit, or lacks its value.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quote that does not end; the text is Python's own
        raise RefusedError(f"The input limits: {error}.") from None
    left = enumerate(words, 1)
    for number, word in left:
        option, equals, value = word.partition("=")
        name = option.removeprefix("--")
        if not option.startswith("--") or name not in WITH_VALUE | FLAGS:
            raise RefusedError(f"The input limits: word {number} is no option of a limit.")
        if name in WITH_VALUE and not equals:
            value = next(left, (0, ""))[1]
        if (name in WITH_VALUE) != bool(value) or value.startswith("--"):
            raise RefusedError(f"The input limits: word {number} has no value, or one too many.")
        yield f"--{name}={value}" if value else word


def _counts(outcome: Path) -> tuple[int, int]:
    """How many limits were judged, and how many of them failed, as JUnit's XML says."""
    (suite,) = ET.parse(outcome).getroot()  # noqa: S314  (our own)
    tests, skipped, failed = (int(suite.attrib[key]) for key in ("tests", "skipped", "failures"))
    return tests - skipped, failed


def _identity(file: Path) -> tuple[int, int, int] | None:
    """Another one after the verb has replaced the file; None where there is none."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def main() -> NoReturn:
    """Run the step that the command line names."""
    steps = {"install": install, "check": check}
    try:
        sys.exit(steps[sys.argv[1]]())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode or _COULD_NOT)


if __name__ == "__main__":
    main()
