"""Compare Peakline's messages with those of the real software. Runs in the peers' environment.

    python schema_peers.py > RESULT

RESULT is a JSON object: for each peer ``null`` if it is not installed, else what was compared
(``messages``, ``services``), every ``differences`` between the definitions, and every
``round_trip_failures``.
"""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from schema_embedded import embedded_pool
from schema_fill import filled_messages, nested_descriptors

from peakline import schema

OUR_PACKAGE = "tensorflow"
# Where TensorFlow keeps the Python modules of a proto tree.
TREES = {
    "tensorflow/core/": "tensorflow/core/",
    "tsl/": "tensorflow/tsl/",
    "xla/": "tensorflow/compiler/xla/",
}
IMPORTED = [
    *(f"google/protobuf/{name}.proto" for name in ("any", "duration", "timestamp", "struct")),
    "xla/service/metrics.proto",
]
"""What the files of XLA import that we have not."""
EMBEDDED = [
    "xla/xla_data.proto",
    "xla/service/hlo.proto",
    *(
        f"tsl/profiler/protobuf/{name}.proto"
        for name in (
            "profiler_analysis",
            "profiler_options",
            "profiler_service",
            "profiler_service_monitor_result",
            "xplane",
        )
    ),
    "plugin/xprof/protobuf/memory_profile.proto",
    "plugin/xprof/protobuf/trace_data_response.proto",
]


class Peer:
    """Pairs of a definition of ours and the peer's, compared one by one.

    ``package`` is what the peer calls package ``tensorflow``.
    """

    def __init__(self, package: str = OUR_PACKAGE) -> None:
        self._package = package
        self.messages: list[str] = []
        self.services: list[str] = []
        self.differences: list[str] = []
        self.round_trip_failures: list[str] = []

    def _theirs(self, name: str) -> str:
        inside = name.startswith(f"{OUR_PACKAGE}.")
        return self._package + name.removeprefix(OUR_PACKAGE) if inside else name

    def _ours(self, name: str) -> str:
        inside = name.startswith(f"{self._package}.")
        return OUR_PACKAGE + name.removeprefix(self._package) if inside else name

    def compare(self, pool: DescriptorPool, paths: Iterable[str]) -> None:
        """Compare everything of ours in files ``paths`` that ``pool`` knows too."""
        for path in paths:
            ours = schema.POOL.FindFileByName(path)
            for top in ours.message_types_by_name.values():
                for descriptor in nested_descriptors(top):
                    self._compare_message(pool, descriptor)
            for service in ours.services_by_name.values():
                self._compare_service(pool, service)

    def _compare_message(self, pool: DescriptorPool, ours: Descriptor) -> None:
        name = ours.full_name
        try:
            theirs = pool.FindMessageTypeByName(self._theirs(name))
        except KeyError:
            return
        self.messages.append(name)
        self._report(name, dict(self._parts(ours, str)), dict(self._parts(theirs, self._ours)))
        self._round_trip(ours, theirs)

    def _parts(
        self, descriptor: Descriptor, ours: Callable[[str], str]
    ) -> Iterator[tuple[str, Any]]:
        """What a definition says, part by part, in names of our own packages."""
        for field in descriptor.fields:
            yield f"field {field.number}", _field(field, ours)
            if field.enum_type is not None:
                yield f"enum {ours(field.enum_type.full_name)}", _values(field.enum_type)
        proto = DescriptorProto()
        descriptor.CopyToProto(proto)
        spans = [range(span.start, span.end) for span in proto.reserved_range]
        yield "reserved numbers", sorted(number for span in spans for number in span)
        yield "reserved names", sorted(proto.reserved_name)
        yield "declaration order", [field.name for field in descriptor.fields]
        for enum in descriptor.enum_types:
            yield f"enum {ours(enum.full_name)}", _values(enum)

    def _report(self, name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        for part in sorted(ours.keys() | theirs.keys()):
            if ours.get(part) != theirs.get(part):
                self.differences.append(
                    f"{name}, {part}: ours {ours.get(part)}, theirs {theirs.get(part)}"
                )

    def _round_trip(self, ours: Descriptor, theirs: Descriptor) -> None:
        pair = GetMessageClass(ours), GetMessageClass(theirs)
        for seed, (first, second) in enumerate((pair, pair[::-1])):
            for message in filled_messages(first, seed):
                sent = message.SerializeToString(deterministic=True)
                back = second.FromString(sent).SerializeToString(deterministic=True)
                if back != sent or first.FromString(back) != message:
                    direction = "from ours" if first is pair[0] else "from theirs"
                    self.round_trip_failures.append(f"{ours.full_name} {direction}")

    def _compare_service(self, pool: DescriptorPool, ours: Any) -> None:
        try:
            theirs = pool.FindServiceByName(self._theirs(ours.full_name))
        except KeyError:
            return
        self.services.append(ours.full_name)
        self._report(ours.full_name, _methods(ours), _methods(theirs))

    def result(self) -> dict[str, list[str]]:
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}


def _field(field: FieldDescriptor, ours: Callable[[str], str]) -> dict[str, Any]:
    named = field.message_type or field.enum_type
    return {
        "name": field.name,
        "json_name": field.json_name,
        "type": field.type,
        "repeated": field.is_repeated,
        "presence": field.has_presence,
        "of": ours(named.full_name) if named is not None else None,
        "oneof": field.containing_oneof.name if field.containing_oneof else None,
        "deprecated": field.GetOptions().deprecated,
    }


def _values(enum: EnumDescriptor) -> dict[str, int]:
    return {value.name: value.number for value in enum.values}


def _methods(service: Any) -> dict[str, Any]:
    return {
        f"method {method.name}": (
            method.input_type.full_name,
            method.output_type.full_name,
            method.client_streaming,
            method.server_streaming,
        )
        for method in service.methods
    }


def _import_if_there(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    return True


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def compare_tensorflow(paths: Sequence[str]) -> Peer:
    """TensorFlow's modules, which register in the default pool under our names."""
    known = []
    for path in paths:
        for tree, folder in TREES.items():
            module = path.replace(tree, folder, 1).removesuffix(".proto").replace("/", ".")
            if path.startswith(tree) and _import_if_there(f"{module}_pb2"):
                known.append(path)
    peer = Peer()
    peer.compare(descriptor_pool.Default(), known)
    return peer


def compare_tensorboard(paths: Sequence[str]) -> Peer:
    """TensorBoard's copies: the same messages under package ``tensorboard``."""
    known = [
        path
        for path in paths
        if _import_if_there(f"tensorboard.compat.proto.{Path(path).stem}_pb2")
    ]
    peer = Peer("tensorboard")
    peer.compare(descriptor_pool.Default(), known)
    return peer


def compare_xprof() -> Peer:
    """XProf's modules of messages of ours."""
    peer = Peer()
    for name in ("memory_profile", "op_metrics"):
        module = importlib.import_module(f"xprof.protobuf.{name}_pb2")
        peer.compare(module.DESCRIPTOR.pool, [module.DESCRIPTOR.name])
    return peer


def compare_embedded() -> Peer:
    """The definitions compiled into XProf's shared library."""
    package = Path(importlib.util.find_spec("xprof").submodule_search_locations[0])
    peer = Peer()
    library = package / "convert" / "profiler_plugin_c_api.so"
    peer.compare(embedded_pool(library, [*IMPORTED, *EMBEDDED]), EMBEDDED)
    return peer


def main() -> None:
    paths = sorted(
        {schema.POOL.FindFileContainingSymbol(entry.full_name).name for entry in _top_types()}
    )
    results: dict[str, Any] = {
        "tensorflow": _installed("tensorflow") and compare_tensorflow(paths),
        "tensorboard": _installed("tensorboard") and compare_tensorboard(paths),
        "xprof": _installed("xprof") and compare_xprof(),
        "xprof_library": _installed("xprof") and compare_embedded(),
    }
    document: dict[str, Any] = {
        name: peer.result() if peer else None for name, peer in results.items()
    }
    document["ours"] = sorted(
        nested.full_name
        for entry in _top_types()
        if isinstance(entry, Descriptor)
        for nested in nested_descriptors(entry)
    )
    json.dump(document, sys.stdout)


def _top_types() -> list[Any]:
    return [getattr(schema, name).DESCRIPTOR for name in schema.SHORT_NAMES]


if __name__ == "__main__":
    main()
