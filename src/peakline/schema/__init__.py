"""The protocol-buffer messages that profiles are made of, and the services that serve them.

Full names, numbers and file paths are those of the upstream projects; the definitions are in
``protos/``. ``from peakline.schema import XSpace`` gives the class of a top-level message or
an enum's wrapper by its short name; :func:`message`, :func:`descriptor`, :func:`enum_name` and
:func:`service` take full names. ``POOL`` is the descriptor pool behind them: private, so that
it lives beside TensorFlow and others in one process (see :mod:`peakline.schema.registry`), and
to be passed to ``google.protobuf.json_format`` for ``Any`` and to gRPC server reflection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.schema.registry import POOL as POOL
from peakline.schema.registry import SHORT_NAMES, by_short_name
from peakline.schema.registry import descriptor as descriptor
from peakline.schema.registry import enum_name as enum_name
from peakline.schema.registry import message as message
from peakline.schema.registry import service as service

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
    from google.protobuf.message import Message

    from peakline.schema.messages import *  # noqa: F403
else:
    # A type checker takes the names from the generated stub and so reports a misspelt one.
    __all__ = ["POOL", "descriptor", "enum_name", "message", "service"]
    __all__ += list(SHORT_NAMES)

    def __getattr__(name: str) -> type[Message] | EnumTypeWrapper:
        """Build the class of ``name`` on first use (PEP 562)."""
        if name not in SHORT_NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = by_short_name(name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
