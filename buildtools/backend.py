"""How the package is built (PEP 517): setuptools, and a C compiler where the machine has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

import kernels

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_Settings = Mapping[str, Any] | None


def _compiler() -> list[str]:
    """The compiler's package, where it takes one."""
    kernels.check_headers()
    return [kernels.ZIG] if kernels.needs_zig() else []


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """What must be installed before a wheel can be built."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings: _Settings = None) -> list[str]:
    """What must be installed before an editable install can be made."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler()]
