"""The protocol-buffer messages that profiles are made of, and the services that serve them.

Full names, numbers and file paths are those of the upstream projects; the definitions are in
``protos/``. ``from peakline.schema import XSpace`` gives the class of a top-level message or
an enum's wrapper by its short name; :func:`message`, :func:`descriptor` and :func:`service` take
full names, and so do :func:`shape` and :func:`enum_name`, which need no protobuf runtime. ``POOL``
is the descriptor pool behind the classes: private, so that it lives beside TensorFlow and others
in one process (see :mod:`peakline.schema.registry`), and to be passed to
``google.protobuf.json_format`` for ``Any`` and to gRPC server reflection.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from peakline.schema.shapes import enum_name as enum_name
from peakline.schema.shapes import shape as shape

_REGISTERED = ("POOL", "descriptor", "message", "service")

if TYPE_CHECKING:
    from peakline.schema.messages import *  # noqa: F403
    from peakline.schema.registry import POOL as POOL
    from peakline.schema.registry import SHORT_NAMES as SHORT_NAMES
    from peakline.schema.registry import descriptor as descriptor
    from peakline.schema.registry import message as message
    from peakline.schema.registry import service as service
else:
    # A type checker takes the names from the generated stub and so reports a misspelt one.

    def __getattr__(name: str) -> Any:
        """Import the protobuf runtime, and build the class of ``name``, on first use (PEP 562)."""
        registry = import_module(f"{__name__}.registry")
        if name == "__all__":
            return [*_REGISTERED, "enum_name", "shape", *registry.SHORT_NAMES]
        if name in _REGISTERED or name == "SHORT_NAMES":
            value = getattr(registry, name)
        elif name in registry.SHORT_NAMES:
            value = registry.by_short_name(name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
