"""Use peakline.schema with the protobuf runtime at hand (see check_protobuf_versions.sh).

    python scripts/check_schema.py IMPLEMENTATION

IMPLEMENTATION is ``upb`` or ``python``: what the runtime must be.
"""

from __future__ import annotations

import sys

import google.protobuf
from google.protobuf import json_format, text_format
from google.protobuf.internal import api_implementation

from peakline import schema
from peakline.schema.registry import SHORT_NAMES


def check(condition: bool, what: str) -> None:
    """End with exit code 1 unless ``condition`` holds."""
    if not condition:
        raise SystemExit(f"protobuf {google.protobuf.__version__}: {what}")


def check_classes() -> None:
    """Every class can be made, and an empty message of it is empty on the wire."""
    for name in SHORT_NAMES:
        entry = getattr(schema, name)
        if hasattr(entry, "FromString"):
            check(not entry.FromString(b"").SerializeToString(), f"{name} is not empty")
            check(schema.message(entry.DESCRIPTOR.full_name) is entry, f"{name} has two classes")


def check_round_trips() -> None:
    """Maps, oneofs, unknown fields and enum numbers, Any, JSON, text, services."""
    space = schema.XSpace(hostnames=["h"])
    plane = space.planes.add(name="/host:CPU")
    plane.stat_metadata[3].name = "addr"
    plane.lines.add().events.add(offset_ps=5).stats.add(metadata_id=3, uint64_value=2**64 - 1)
    data = space.SerializeToString() + b"\xa0\x06\x07"
    back = schema.XSpace.FromString(data)
    stat = back.planes[0].lines[0].events[0].stats[0]
    check(back.SerializeToString() == data, "bytes differ after a round trip")
    check(stat.WhichOneof("value") == "uint64_value", "a oneof is lost")
    check(back.planes[0].stat_metadata[3].name == "addr", "a map is lost")
    tensor = schema.TensorDescription(dtype=200)
    check(schema.TensorDescription.FromString(tensor.SerializeToString()).dtype == 200, "an enum")
    check(schema.enum_name("tensorflow.DataType", 200) is None, "an unknown number has a name")
    check(schema.DataType.Name(101) == "DT_FLOAT_REF", "an enum's wrapper")
    info = schema.MetaGraphDef.MetaInfoDef()
    info.any_info.Pack(space)
    document = json_format.MessageToJson(info, descriptor_pool=schema.POOL)
    parsed = json_format.Parse(document, type(info)(), descriptor_pool=schema.POOL)
    # Bytes, because the runtime in Python compares Any with the help of the default pool only.
    check(parsed.any_info.value == space.SerializeToString(), "JSON differs after a round trip")
    check(text_format.Parse(str(space), schema.XSpace()) == space, "text format differs")
    methods = schema.service("tensorflow.ProfileAnalysis").methods_by_name
    check("GetSessionToolData" in methods, "a service is lost")


def main() -> None:
    """Check the runtime's implementation, then use it."""
    implementation = api_implementation.Type()
    check(implementation == sys.argv[1], f"runs as {implementation}")
    check_classes()
    check_round_trips()
    print(f"protobuf {google.protobuf.__version__} ({implementation}): works")


if __name__ == "__main__":
    main()
