"""Import packages in the given order and use the messages of each. Runs in the peers' environment.

python schema_import_order.py peakline tensorflow tensorboard
"""

import importlib
import sys

PACKAGES = {
    "peakline": ("peakline.schema", "peakline.schema"),
    "tensorflow": ("tensorflow", "tensorflow.core.framework.graph_pb2"),
    "tensorboard": ("tensorboard", "tensorboard.compat.proto.graph_pb2"),
    "xprof": ("xprof", "xprof.protobuf.memory_profile_pb2"),
}
MESSAGES = {"xprof": "MemoryProfile"}


def main() -> None:
    modules = {}
    for name in sys.argv[1:]:
        package, holder = PACKAGES[name]
        importlib.import_module(package)
        modules[name] = importlib.import_module(holder)
    for name, module in modules.items():
        message_name = MESSAGES.get(name, "GraphDef")
        theirs = getattr(module, message_name)()
        theirs.MergeFromString(b"\x12\x00" if message_name == "GraphDef" else b"\x1a\x01a")
        ours = getattr(modules["peakline"], message_name).FromString(theirs.SerializeToString())
        if not ours.ListFields() or ours.SerializeToString() != theirs.SerializeToString():
            raise SystemExit(f"{name}: {message_name} does not survive")
        if name != "peakline" and type(ours) is type(theirs):
            raise SystemExit(f"{name}: the classes are the same")


if __name__ == "__main__":
    main()
