"""pod_viewer with ``compatible=xprof`` against XProf: every step, core and number.

Not compared is ``hostName``: XProf takes the name that the profiler wrote into the file, which two
processes of one machine share; ours is the host's name in the session.
"""

import gzip
import json
import random
from pathlib import Path

import pytest

from peakline.engine import Engine
from peakline.repository import Repository
from reference.xspace_builder import LineBuilder, PlaneBuilder, SpaceBuilder
from tests.conformance.oracle import DATA, SEEDS
from tests.conformance.stats_tables import theirs

TOOL = "pod_viewer"
US = 10**6
KERNELS = ["gemm_fp16", "sgemm", "ncclKernel_AllReduce", "MemcpyH2D", "MEMCPYHToD", "MEMCPYDToH"]
OPS = ["MatMul:MatMul", "IteratorGetNext:IteratorGetNext", "EagerExecute: Add", "python work"]
CATEGORIES = ["convolution", "all-reduce", "infeed", "outfeed", "data formatting"]


class RandomHost:
    """A host with steps of its own, on a machine without devices, with GPUs or with TPUs.

    The file tells the steps of its events itself (``is_grouped``), or they are found: from the
    step's marker through what lies in it and the launches to the devices.
    """

    def __init__(self, rng: random.Random, hardware: str) -> None:
        self.rng, self.hardware = rng, hardware
        self.is_grouped = rng.random() < 0.3
        self.builder = SpaceBuilder()
        self.host = self.builder.host()
        self.thread, self.other = self.host.line("python"), self.host.line("worker")
        self.planes = [
            self.builder.plane(f"/device:{hardware}:{number}")
            for number in range(0 if hardware == "CPU" else rng.randint(1, 3))
        ]
        for plane in [self.host, *self.planes] if self.is_grouped else []:
            plane.stat_id("group_id")
        self.lines = {}
        self.launches = 0

    def add(self, steps: int, at: int) -> bytes:
        """Steps from ``at`` on; gives the file's content."""
        rng = self.rng
        for step in range(steps):
            length = rng.randint(50, 400) * US
            own = {"group_id": step} if self.is_grouped else {}
            if rng.random() < 0.9:
                named = {"step_name": str(step)} if self.is_grouped else {"_r": 1, "step_num": step}
                self.thread.event(f"train {step}", at, length, own | named)
            for line in (self.thread, self.other):
                for _ in range(rng.randint(0, 4)):
                    lasts = rng.randint(0, length // 3)
                    begin = at + rng.randint(0, length - lasts)
                    line.event(rng.choice(OPS), begin, lasts, own)
            for plane in self.planes:
                if self.hardware == "GPU":
                    self._gpu_step(plane, own, at, length)
                else:
                    self._tpu_step(plane, own, step, at, length)
            at += length + rng.randint(0, 50) * US
        return self.builder.space.SerializeToString()

    def _gpu_step(self, plane: PlaneBuilder, own: dict, at: int, length: int) -> None:
        rng = self.rng
        for _ in range(rng.randint(0, 4)):
            self.launches += 1
            stats = own | {"correlation_id": self.launches}
            self.thread.event("cuLaunchKernel", at + rng.randint(0, length - US), US // 2, stats)
            begin, lasts = at + rng.randint(0, length), rng.randint(0, length // 2)
            name = f"Stream #{rng.randint(7, 8)}(Kernel)"
            self._line(plane, name).event(rng.choice(KERNELS), begin, lasts, stats)

    def _tpu_step(self, plane: PlaneBuilder, own: dict, step: int, at: int, length: int) -> None:
        rng = self.rng
        if rng.random() < 0.9:
            self._line(plane, "Steps").event(str(step), at, length, own)
        for _ in range(rng.randint(1, 5)):
            lasts, category = rng.randint(0, length // 6), rng.choice(CATEGORIES)
            name = f"%{category}.{rng.randint(1, 3)}"
            kind = plane.message.event_metadata[plane.event_id(name)]
            if not kind.stats:
                stats = {"hlo_category": category, "program_id": 1, "symbol_id": kind.id}
                plane.add_stats(kind, stats)
            self._line(plane, "XLA Ops").event(name, at, lasts, own)
            at += lasts + rng.randint(0, 3) * US

    def _line(self, plane: PlaneBuilder, name: str) -> LineBuilder:
        key = plane.message.name, name
        if key not in self.lines:
            self.lines[key] = plane.line(name)
        return self.lines[key]


CNN = DATA / "sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
JAX = DATA / "sessions/jax_cpu/plugins/profile/2026_11_20_17_20_28/vm.xplane.pb.gz"
HOSTS = sorted((DATA / "sessions/tf2_multihost").glob("plugins/profile/*/*.xplane.pb"))


def random_session(folder: Path, seed: int) -> list[Path]:
    """The files of a session's hosts."""
    rng = random.Random(seed)
    hardware = rng.choice(["CPU", "GPU", "TPU"])
    paths = []
    for number in range(rng.choice([1, 1, 2, 3])):
        kind = "CPU" if rng.random() < 0.1 else hardware
        content = RandomHost(rng, kind).add(rng.randint(0, 9), rng.randint(0, 900) * US)
        paths.append(folder / f"seed{seed}-{number}.xplane.pb")
        paths[-1].write_bytes(content)
    return paths


def ours(paths: list[Path], folder: Path) -> object:
    session = folder / "plugins/profile/s"
    session.mkdir(parents=True)
    for number, path in enumerate(paths):
        content = path.read_bytes()
        plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        (session / f"host{number:03}.xplane.pb").write_bytes(plain)
    result = Repository(folder).session("s")
    answer = Engine(cache_bytes=0).tool(result, TOOL, parameters={"compatible": "xprof"})
    assert answer.notes == ()
    return json.loads(answer.content)


def without_hosts(document):
    for step in document["podStatsSequence"]["podStatsMap"]:
        for record in step["podStatsPerCore"].values():
            del record["hostName"]
    return document


def compare(xprof, sessions, folder):
    """Hold every answer against XProf's; returns how many steps the sessions have, each."""
    counts, different = [], []
    for number, paths in enumerate(sessions):
        right = without_hosts(theirs(xprof, TOOL, *paths))
        counts.append(len(right["podStatsSequence"]["podStatsMap"]))
        if without_hosts(ours(paths, folder / str(number))) != right:
            different.append([path.name for path in paths])
    assert different == []
    return counts


def test_every_sample(xprof, tmp_path):
    several = [HOSTS, HOSTS[::-1], [*HOSTS, CNN], [CNN, JAX]]
    sessions = [*([path] for path in xprof.spaces), *several]
    # Else nothing was compared.
    assert sum(compare(xprof, sessions, tmp_path)) > 100


@pytest.mark.conformance
def test_random_sessions(live_xprof, tmp_path):
    sessions = [random_session(tmp_path, seed) for seed in range(SEEDS)]
    steps = compare(live_xprof, sessions, tmp_path)
    assert sum(steps) > SEEDS
    assert any(count and len(paths) > 1 for count, paths in zip(steps, sessions, strict=True))
