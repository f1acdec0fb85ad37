"""Writes a trace of ``torch.profiler`` without the paths and the name of the machine."""

import os
import re
import sys
from pathlib import Path


def write_trace(profiler, folder: Path, name: str) -> None:
    """Export what was profiled to ``NAME.trace.json``."""
    path = Path(folder) / f"{name}.trace.json"
    profiler.export_chrome_trace(str(path))
    text = path.read_text()
    for home in {str(Path(os.__file__).parent), os.path.realpath(Path(os.__file__).parent)}:
        text = text.replace(home, "/usr/lib/python3.11")
    text = re.sub(r'"traceName": "[^"]*"', f'"traceName": "{path.name}"', text)
    text = re.sub(r'"host_name": "[^"]*"', '"host_name": "worker0"', text)
    text = text.replace(sys.base_prefix, "/usr")
    path.write_text(text)
