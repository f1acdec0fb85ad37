"""PyTorch's own CUDA caching allocator as a program that needs no GPU.

``build`` takes three wheels: ``torch`` for CUDA 13 (only ``libc10.so``, ``libc10_cuda.so`` and the
headers of ``c10`` are unpacked), ``nvidia-cuda-runtime`` and ``nvidia-cuda-crt`` (only headers). It
compiles

* ``fake_cuda.cpp`` as ``libcudart.so.13``: a device that is nothing but a number of bytes,
* ``fake_nvml.cpp`` as ``libnvidia-ml.so.1``: what the allocator queries before its first expandable
  segment and when it writes the message of a failure,
* ``drive.cpp``: reads requests (``sequences.py``) and calls the allocator's public C++ interface.

Two things that other libraries of PyTorch do at start, the program does itself: it sets the
function that says whether a device is in use, and prepares the table of devices that reach each
other.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLACEMENTS = ("lowest", "rising", "falling")
_WANTED = re.compile(
    r"torch/(lib/libc10(_cuda)?\.so|include/(c10|torch/headeronly)/.*|version\.py)"
    r"|nvidia/cu13/include/.*"
)


@dataclass(frozen=True)
class Setting:
    """Settings of the allocator, and the memory fraction set before the first request (0: none)."""

    text: str = ""
    fraction: float = 0.0

    @property
    def name(self) -> str:
        """What the recorded data call it."""
        text = self.text or "defaults"
        return f"{text} fraction {self.fraction}" if self.fraction else text


def build(wheels: list[Path], folder: Path) -> Path:
    """The compiled program."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if _WANTED.fullmatch(name)]
            archive.extractall(folder, names)
    common = ["g++", "-std=c++20", "-O1", f"-I{folder}/nvidia/cu13/include"]
    runtime, nvml = folder / "libcudart.so.13", folder / "libnvidia-ml.so.1"
    for library, source in ((runtime, "fake_cuda"), (nvml, "fake_nvml")):
        command = [*common, "-fPIC", "-shared", f"{HERE}/{source}.cpp", "-o", str(library)]
        command.append(f"-Wl,-soname,{library.name}")
        if library is runtime:
            command.append(f"-Wl,--version-script={HERE}/fake_cuda.map")
        subprocess.run(command, check=True)
    libraries = folder / "torch/lib"
    program = folder / "drive"
    subprocess.run(
        [
            *common,
            "-w", f"-I{folder}/torch/include", f"{HERE}/drive.cpp", "-o", str(program),
            f"-L{libraries}", "-lc10_cuda", "-lc10", "-Wl,--no-as-needed", str(runtime), str(nvml),
            f"-Wl,-rpath,{folder}:{libraries}",
        ],
        check=True,
    )  # fmt: skip
    return program


def version(folder: Path) -> str:
    """The version of PyTorch and its commit."""
    text = (folder / "torch/version.py").read_text()
    return " ".join(value for _, value in re.findall(r"(__version__|git_version) = '(.*)'", text))


def run(
    program: Path,
    requests: Path,
    capacity: int,
    setting: Setting,
    placement: int = 0,
    history: int = -1,
    detail: int = 0,
) -> dict[str, Any]:
    """What the allocator did with the requests; the arguments are those of ``drive.cpp``."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTORCH") and name != "LD_LIBRARY_PATH"
    }
    if setting.text:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = setting.text
    numbers = (capacity, placement, setting.fraction, history, detail)
    done = subprocess.run(
        [str(program), str(requests), *map(str, numbers)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{requests.name}, {setting.name}: {done.stderr[:1500]}")
    return json.loads(done.stdout)


_ACTIVE = ("inactive", "active_pending_free", "active_allocated")


def to_snapshot(ran: dict[str, Any]) -> dict[str, Any]:
    """What ``torch.cuda.memory._snapshot`` returns, without stacks.

    Times are made up, so that the same requests always give the same file: ten microseconds from
    entry to entry.
    """
    segments = []
    for row in ran["segments"]:
        address, total, requested, allocated, active, stream, large, expandable, *rest = row
        pool_1, pool_2, _, blocks = rest
        segment = {
            "device": 0, "address": address, "total_size": total, "allocated_size": allocated,
            "active_size": active, "requested_size": requested, "stream": stream,
            "segment_type": "large" if large else "small",
            "segment_pool_id": (pool_1, pool_2),
            "is_expandable": bool(expandable),
            "frames": [],
            "blocks": [],
        }  # fmt: skip
        for size, wanted, is_allocated, is_active in blocks:
            segment["blocks"].append(
                {
                    "address": address,
                    "size": size,
                    "requested_size": wanted,
                    "state": _ACTIVE[2 if is_allocated else is_active],
                    "frames": [],
                }
            )
            address += size
        segments.append(segment)
    traces = [
        [
            {
                "action": action,
                "device_free" if action == "oom" else "addr": address,
                "size": size,
                "stream": stream,
                "time_us": 1_700_000_000_000_000 + 10 * place,
                "compile_context": "",
                "user_metadata": "",
                "pool_id": (pool_1, pool_2),
            }
            for place, (action, address, size, stream, pool_1, pool_2) in enumerate(trace)
        ]
        for trace in ran["traces"]
    ]
    config = ran["config"]
    settings = {
        "PYTORCH_CUDA_ALLOC_CONF": config["last"],
        "max_split_size": config["max_split_size"],
        "garbage_collection_threshold": config["garbage_collection_threshold"],
        "expandable_segments": bool(config["expandable_segments"]),
        "pinned_num_register_threads": config["pinned_num_register_threads"],
        "release_lock_on_cudamalloc": bool(config["release_lock_on_malloc"]),
        "pinned_use_cuda_host_register": bool(config["pinned_use_host_register"]),
        "roundup_power2_divisions": {
            str(2**n): divisions for n, divisions in enumerate(config["roundup_power2_divisions"])
        },
        "graph_capture_record_stream_reuse": bool(config["graph_capture_record_stream_reuse"]),
        "max_round_threshold": config["max_round_threshold"] % 2**64,
        "max_cached_size": config["max_cached_size"] % 2**64,
    }
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": settings,
        "external_annotations": [],
        "host_segments": [],
        "host_traces": [],
    }
