"""Ask XProf about files. Runs in the peers' environment, without Peakline.

A request is ``{"paths", "tool", "options", "target"}``: the XSpace files of a session's hosts
(plain or gzip), and where to write what the tool gives. The answer is null.
"""

import gzip
import tempfile
from pathlib import Path
from typing import Any

from serve import serve
from xprof.convert import _pywrap_profiler_plugin  # type: ignore[import-not-found]
from xprof.convert.raw_to_tool_data import process_raw_trace  # type: ignore[import-not-found]

_OF_PROGRAMS = frozenset({"graph_viewer", "memory_viewer"})


def answer(request: dict[str, Any]) -> None:
    """Write the answer, or raise RuntimeError with the library's message."""
    tool, options = request["tool"], request["options"]
    # The library writes caches beside its input, so each question has a log directory of its own.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as logdir:
        session = Path(logdir) / "plugins" / "profile" / "session"
        session.mkdir(parents=True)
        hosts = []
        for number, path in enumerate(request["paths"]):
            hosts.append(str(session / f"host{number or ''}.xplane.pb"))
            Path(hosts[-1]).write_bytes(_content(path))
        if tool in _OF_PROGRAMS:
            # The page lists the tools first, which writes the programs beside the profile.
            _pywrap_profiler_plugin.xspace_to_tools_data(hosts, "tool_names", {})
        result, success = _pywrap_profiler_plugin.xspace_to_tools_data(hosts, tool, options)
        if not success:
            raise RuntimeError(result if isinstance(result, str) else str(result, errors="replace"))
        if tool == "trace_viewer" and options.get("format") != "pb":
            # The library gives a message; the JSON is made by XProf's Python part.
            result = "".join(process_raw_trace(result))
        content = result.encode() if isinstance(result, str) else result
        Path(request["target"]).write_bytes(content)


def _content(path: str) -> bytes:
    content = Path(path).read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


if __name__ == "__main__":
    serve(answer)
