"""Answers questions in forks of itself and says what each took: lines of JSON in, lines out.

Everything is imported once, here, so that a fork costs milliseconds; it inherits the pages of the
imports, so its peak is that of a process of its own. A line in is a list of questions (arguments of
the command line), answered one after the other in one fork while all goes well:

    {"questions": [["summary", FILE], ...], "bytes": 3000000000, "seconds": 60}

and a line out, for each of them:

    {"peak_bytes": 99999999, "seconds": 0.3, "code": 0, "said": "..."}

``bytes`` is the most address space beyond that of the imports, ``seconds`` user and system time:
who takes more ends, and the next question has a fork of its own. ``code`` is the exit code, or
below 0 the signal that ended it.
"""

import contextlib
import json
import os
import resource
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

_UNUSED = (
    "peakline.service", "peakline.capture", "peakline.pytest", "peakline.figures",
    "peakline.engine.dask_cluster", "peakline.repository.remote", "peakline.__main__",
)  # fmt: skip
"""What no question of `questions` imports, so that it counts for none."""


def main() -> None:
    """Answer until the input ends."""
    _import_all()
    for line in sys.stdin:
        wanted = json.loads(line)
        left = wanted["questions"]
        while left:
            result = _answered(left, wanted["bytes"], wanted["seconds"])
            for one in result:
                sys.stdout.write(json.dumps(one) + "\n")
                sys.stdout.flush()
            left = left[len(result) :]


def _import_all() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import peakline

    for module in walk_packages(peakline.__path__, "peakline."):
        if not module.name.startswith(_UNUSED):
            import_module(module.name)


def _answered(questions: list[list[str]], most: int, seconds: int) -> list[dict[str, Any]]:
    """What the first questions took: all of them, or those up to the first that ended a process."""
    with tempfile.TemporaryFile("w+") as answer, tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                _limit_memory(most)
                for words in questions:
                    print(
                        json.dumps(_measured(words, seconds, said.fileno())),
                        file=answer,
                        flush=True,
                    )
                os._exit(0)
            os._exit(99)
        _, status, usage = os.wait4(child, 0)
        answer.seek(0)
        result = [json.loads(line) for line in answer]
        if len(result) == len(questions):
            return result
        spent = usage.ru_utime + usage.ru_stime - sum(one["seconds"] for one in result)
        ended = {
            "peak_bytes": usage.ru_maxrss * 1024,
            "seconds": round(spent, 3),
            "code": os.waitstatus_to_exitcode(status),
            "said": "",
        }
        return [*result, ended]


def _limit_memory(most: int) -> None:
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + most
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _measured(words: list[str], seconds: int, said: int) -> dict[str, Any]:
    from peakline.__main__ import main as peakline

    with Path(os.devnull).open("r+b") as nowhere:
        os.dup2(nowhere.fileno(), 0)
        os.dup2(nowhere.fileno(), 1)
    os.ftruncate(said, 0)
    os.lseek(said, 0, os.SEEK_SET)
    os.dup2(said, 2)
    # VmHWM begins anew (Linux: 5 in clear_refs).
    Path("/proc/self/clear_refs").write_text("5")
    before = _spent()
    resource.setrlimit(resource.RLIMIT_CPU, (int(before) + seconds + 1, resource.RLIM_INFINITY))
    code = peakline(words)
    took = _spent() - before
    text = os.pread(said, 4000, 0).decode(errors="replace")
    peak = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line
    )
    return {"peak_bytes": int(peak.split()[1]) * 1024, "seconds": round(took, 3), "code": code,
            "said": text}  # fmt: skip


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
