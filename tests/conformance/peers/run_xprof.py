"""Ask XProf about many files in one process. Runs in the peers' environment, without Peakline.

    python run_xprof.py REQUESTS RESULTS

REQUESTS is a JSON list of ``{"path", "memory_profile", "trace_viewer", "xplane"}``: an XSpace file
(plain or gzip), and where to write the tools' JSON texts and the grouped XSpace; any may be null.
``tools`` lists more tools as ``[name, options, path]``, ``files`` the other hosts of the session; a
tool that fails writes its message to ``path.error``.
RESULTS gets one JSON line per finished request: null, or the text of the error. A crash of the
library ends the process; the first request without a line is then the one that did it.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from xprof.convert import _pywrap_profiler_plugin  # type: ignore[import-not-found]
from xprof.convert.raw_to_tool_data import process_raw_trace  # type: ignore[import-not-found]

TOOLS = {
    "memory_profile": "memory_profile",
    "trace_viewer": "trace_viewer",
    "xplane": "_xplane.pb",
}


def answer(request: dict[str, Any]) -> str | None:
    """Write what ``request`` asks for; returns the error's text, or None."""
    content = _content(request["path"])
    # The library writes caches beside its input, so each file gets a log directory of its own.
    logdir = Path(tempfile.mkdtemp())
    try:
        session = logdir / "plugins" / "profile" / "session"
        session.mkdir(parents=True)
        path = session / "host.xplane.pb"
        path.write_bytes(content)
        hosts = [str(path)]
        for number, other in enumerate(request.get("files", [])):
            hosts.append(str(session / f"host{number + 1}.xplane.pb"))
            Path(hosts[-1]).write_bytes(_content(other))
        for wanted, tool in TOOLS.items():
            if request[wanted] is None:
                continue
            result, success = _pywrap_profiler_plugin.xspace_to_tools_data([str(path)], tool, {})
            if not success:
                return str(result, errors="replace")
            if wanted == "trace_viewer":
                # The library gives a message; the JSON is made by XProf's Python part.
                result = "".join(process_raw_trace(result)).encode()
            Path(request[wanted]).write_bytes(result)
        for tool, options, target in request.get("tools", []):
            result, success = _pywrap_profiler_plugin.xspace_to_tools_data(hosts, tool, options)
            if tool == "trace_viewer" and success and options.get("format") != "pb":
                result = "".join(process_raw_trace(result)).encode()
            if isinstance(result, str):
                result = result.encode()
            Path(target if success else f"{target}.error").write_bytes(result)
    except RuntimeError as error:
        return str(error)
    finally:
        shutil.rmtree(logdir, ignore_errors=True)
    return None


def _content(path: str) -> bytes:
    content = Path(path).read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def main() -> None:
    requests, results = sys.argv[1:]
    with Path(results).open("a") as lines:
        for request in json.loads(Path(requests).read_text()):
            lines.write(json.dumps(answer(request)) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
