"""Answers of the real XProf: of the library itself, or as it once gave them for our samples."""

import gzip
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from peakline.schema import XSpace, XStat
from tests.conformance.answers import Answers
from tests.conformance.peer import Peer
from tests.sweeps import is_chosen

SEEDS = int(os.environ.get("PEAKLINE_CONFORMANCE_SEEDS", "20"))
"""How many random inputs a comparison makes; more in `make soak`."""
DATA = Path(__file__).parent.parent / "data"
OWN_SAMPLES = (DATA / "sessions", DATA / "programs")
VERSION = "xprof-2.24.2"
TAG = "conformance_tag"
TRACES = ("jax_cpu", "tf2_multihost", "tf2_two_devices")


Options = Mapping[str, object] | None


@dataclass(frozen=True)
class Grouping:
    """By the number of an event in its file: the step that it belongs to, None for none, and the
    name of the step where the event stands for one. Step events that XProf drops are absent.
    """

    groups: dict[int, int | None]
    step_names: dict[int, str]


class XProf(Protocol):
    """Who answers for XProf.

    ``spaces`` are the files it can be asked about besides those that a test makes, ``traces``
    those of them whose events it can show, of which there are many. Unless it is whole they are a
    choice, and a test asks fewer questions.
    """

    is_recorded: bool
    is_whole: bool
    spaces: Sequence[Path]
    traces: Sequence[Path]

    def ask(self, tool: str, *paths: Path, options: Options = None) -> bytes:
        """What ``tool`` gives for the files of a session's hosts, or `Refused` with its error."""

    def grouping(self, path: Path) -> Grouping:
        """The steps that it finds in a file."""


class LiveXProf:
    """The library. Its files: the sample sessions, and the folders that PEAKLINE_SAMPLES names.

    About the programs' profiles its recorded answers are compared; the soak names them too.
    """

    is_recorded = False
    is_whole = True

    def __init__(self) -> None:
        self.peer = Peer("run_xprof.py")
        self._folder = tempfile.TemporaryDirectory()
        self.spaces = self.traces = _spaces_in(OWN_SAMPLES[0], *more_samples())

    def ask(self, tool: str, *paths: Path, options: Options = None) -> bytes:
        target = Path(self._folder.name) / "answer"
        request = {"paths": list(map(str, paths)), "tool": tool, "options": dict(options or {})}
        self.peer.ask(request | {"target": str(target)})
        return target.read_bytes()

    def grouping(self, path: Path) -> Grouping:
        tagged = Path(self._folder.name) / "tagged.xplane.pb"
        tagged.write_bytes(_tagged(space_of(path)).SerializeToString())
        result = list(_tagged_stats(self.ask("_xplane.pb", tagged)))
        return Grouping(
            {
                stats[TAG].int64_value: stats["group_id"].int64_value
                if "group_id" in stats
                else None
                for stats in result
            },
            {
                stats[TAG].int64_value: stats["step_name"].str_value
                for stats in result
                if "step_name" in stats
            },
        )

    def close(self) -> None:
        """End the process."""
        self.peer.close()
        self._folder.cleanup()


class RecordedXProf:
    """Its answers about the repository's own samples; ``live`` is asked for them anew."""

    is_recorded = True
    is_whole = True

    def __init__(self, live: LiveXProf | None = None) -> None:
        if live:
            live.peer.check_version(VERSION)
        self._live = live
        self._answers = Answers(VERSION, asking=live is not None)
        # All events of a larger one are megabytes, and of the same kinds.
        self.traces = _spaces_in(*(OWN_SAMPLES[0] / name for name in TRACES))

    def ask(self, tool: str, *paths: Path, options: Options = None) -> bytes:
        question = " ".join(path.relative_to(DATA).as_posix() for path in paths)
        if options:
            question += f" {json.dumps(options, sort_keys=True)}"
        return self._answers.get(
            tool, question, lambda: self._live.ask(tool, *paths, options=options)
        )

    @property
    def spaces(self) -> Sequence[Path]:
        """All samples, or of them those that are chosen for every test run."""
        every = _spaces_in(*OWN_SAMPLES)
        return every if self.is_whole else [path for path in every if is_chosen(path)]

    def grouping(self, path: Path) -> Grouping:
        def live() -> bytes:
            result = self._live.grouping(path)
            return json.dumps(
                [list(result.groups.items()), list(result.step_names.items())]
            ).encode()

        answer = self._answers.get("grouping", path.relative_to(DATA).as_posix(), live)
        groups, step_names = json.loads(answer)
        return Grouping(dict(groups), dict(step_names))

    def close(self) -> None:
        """Write what was asked anew."""
        self._answers.save()


def more_samples() -> list[Path]:
    """The folders of other profiles that are to be compared too."""
    return [Path(text) for text in os.environ.get("PEAKLINE_SAMPLES", "").split(":") if text]


def _spaces_in(*folders: Path) -> list[Path]:
    """The XSpace files of folders that hold something, and are not damaged on purpose."""
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.name.endswith((".xplane.pb", ".xplane.pb.gz"))
        and "damaged" not in path.parts
        and not path.name.startswith("CORRUPT")
        and path.stat().st_size
    ]


def space_of(path: Path) -> XSpace:
    """The message in a file, plain or compressed."""
    content = path.read_bytes()
    return XSpace.FromString(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)


def _tagged(space: XSpace) -> XSpace:
    """``space``, with the events' numbers in the file as stats of theirs, to be found again."""
    number = 0
    for plane in space.planes:
        tag = max(plane.stat_metadata, default=0) + 1
        plane.stat_metadata[tag].id = tag
        plane.stat_metadata[tag].name = TAG
        for line in plane.lines:
            for event in line.events:
                event.stats.add(metadata_id=tag, int64_value=number)
                number += 1
    return space


def _tagged_stats(content: bytes) -> Iterator[dict[str, XStat]]:
    """The stats of every tagged event by name, the first of each name."""
    for plane in XSpace.FromString(content).planes:
        names = {key: metadata.name for key, metadata in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                stats: dict[str, XStat] = {}
                for stat in event.stats:
                    stats.setdefault(names.get(stat.metadata_id, ""), stat)
                if TAG in stats:
                    yield stats
