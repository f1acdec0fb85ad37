"""Answers of the real TensorFlow: of itself, or as it once gave them for our samples and cases."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.conformance.answers import Answers
from tests.conformance.oracle import DATA, more_samples
from tests.conformance.peer import Crashed, Peer

VERSION = "tensorflow-cpu-2.21.0"
CRASHED = "crashed"


@dataclass(frozen=True)
class Profiled:
    """What tfprof is asked about: a graph, its runs by step, and where its nodes were made.

    ``as_is`` keeps TensorFlow from building the graph again; ``cases`` are pairs of view and
    options.
    """

    name: str
    graph: Path
    runs: Sequence[tuple[int, Path]]
    traces: Mapping[str, Any]
    cases: Sequence[tuple[str, Mapping[str, Any]]]
    as_is: bool = False


class TensorFlow(Protocol):
    """Who answers for TensorFlow; ``folders`` are those with the samples it can be asked about.
    Unless it is whole a test asks fewer questions.
    """

    is_whole: bool
    folders: Sequence[Path]

    def timeline(self, run: Path, options: Mapping[str, object]) -> str:
        """The Chrome trace of TensorFlow's own timeline."""

    def import_errors(self, subject: str, graphs: Mapping[str, bytes]) -> dict[str, str | None]:
        """What importing each GraphDef says: None, an error's text, or `CRASHED`."""

    def tfprof(self, request: Profiled) -> Mapping[str, bytes]:
        """``shaped``: the graph with the shapes that TensorFlow finds; ``N.proto`` and, but for
        advice, ``N.text``: what tfprof says to case N.
        """


class LiveTensorFlow:
    """TensorFlow itself, in one process."""

    is_whole = True

    def __init__(self) -> None:
        self.peer = Peer("run_tensorflow.py")
        self._folder = tempfile.TemporaryDirectory()
        self.folders = [DATA, *more_samples()]

    def timeline(self, run: Path, options: Mapping[str, object]) -> str:
        target = self._place("timeline")
        request = {"kind": "timeline", "run": str(run), "options": dict(options)}
        self.peer.ask(request | {"target": str(target)})
        return target.read_text(encoding="utf-8")

    def import_errors(
        self, subject: str, graphs: Mapping[str, bytes], *, run: bool = False
    ) -> dict[str, str | None]:
        place, result = self._place(subject), {}
        for name, graph in graphs.items():
            place.write_bytes(graph)
            try:
                result[name] = self.peer.ask({"kind": "import", "graph": str(place), "run": run})
            except Crashed:
                result[name] = CRASHED
        return result

    def tfprof(self, request: Profiled) -> Mapping[str, bytes]:
        with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
            place = Path(folder)
            cases = [
                {
                    "view": view,
                    "options": dict(options),
                    "proto": str(place / f"{number}.proto"),
                    "text": None if view == "advise" else str(place / f"{number}.text"),
                }
                for number, (view, options) in enumerate(request.cases)
            ]
            self.peer.ask(
                {
                    "kind": "tfprof",
                    "graph": str(request.graph),
                    "as_is": request.as_is,
                    "runs": [[step, str(path)] for step, path in request.runs],
                    "traces": dict(request.traces),
                    "shaped": str(place / "shaped"),
                    "cases": cases,
                }
            )
            return {path.name: path.read_bytes() for path in place.iterdir()}

    def exported(self, run: bytes) -> dict[str, Any]:
        """What the timeline and tfprof make of a RunMetadata."""
        place = self._place("run")
        place.write_bytes(run)
        return self.peer.ask({"kind": "export", "run": str(place)})

    def close(self) -> None:
        """End the process."""
        self.peer.close()
        self._folder.cleanup()

    def _place(self, name: str) -> Path:
        return Path(self._folder.name) / name


class RecordedTensorFlow:
    """Its answers about the repository's own samples; ``live`` is asked for them anew."""

    is_whole = True

    def __init__(self, live: LiveTensorFlow | None = None) -> None:
        if live:
            live.peer.check_version(VERSION)
        self._live = live
        self._answers = Answers(VERSION, asking=live is not None)
        self.folders = [DATA]

    def timeline(self, run: Path, options: Mapping[str, object]) -> str:
        question = f"{run.relative_to(DATA).as_posix()} {json.dumps(options, sort_keys=True)}"
        answer = self._answers.get(
            "timeline", question, lambda: self._live.timeline(run, options).encode()
        )
        return answer.decode()

    def import_errors(self, subject: str, graphs: Mapping[str, bytes]) -> dict[str, str | None]:
        answer = self._answers.get(
            "import_graph",
            subject,
            lambda: json.dumps(self._live.import_errors(subject, graphs), indent=1).encode(),
        )
        return json.loads(answer)

    def tfprof(self, request: Profiled) -> Mapping[str, bytes]:
        parts = ["shaped", *(f"{number}.proto" for number in range(len(request.cases)))]
        parts += [
            f"{number}.text" for number, (view, _) in enumerate(request.cases) if view != "advise"
        ]
        result = self._live.tfprof(request) if self._live else {}
        return {
            part: self._answers.get("tfprof", f"{request.name}/{part}", lambda p=part: result[p])
            for part in parts
        }

    def close(self) -> None:
        """Write what was asked anew."""
        self._answers.save()
