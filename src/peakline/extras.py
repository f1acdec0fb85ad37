"""What comes with an extra of this package, and the line to type where it is not installed.

`pip install peakline` is small: what only some verbs need is an extra, and imported where they
need it. docs/install.md has what each one is for.
"""

from __future__ import annotations

from importlib.util import find_spec

from peakline.errors import UsageError

EXTRAS = {
    "serve": {
        "grpc": "grpcio",
        "grpc_health": "grpcio-health-checking",
        "grpc_reflection": "grpcio-reflection",
        "hpack": "hpack",
        "prometheus_client": "prometheus-client",
    },
    "notebook": {"plotly": "plotly"},
    "dask": {"distributed": "distributed", "dask": "dask", "cryptography": "cryptography"},
    "s3": {"s3fs": "s3fs"},
    "gs": {"gcsfs": "gcsfs"},
}
"""The modules that each extra brings, and the distributions that they are in."""


def require(extra: str, user: str) -> None:
    """Raise the UsageError of `missing_extra` where a module of ``extra`` is not installed.

    ``user`` is what needs it: a verb, an option, a function. Nothing is imported.
    """
    for module in EXTRAS[extra]:
        if not _is_installed(module):
            raise missing_extra(extra, user, module)


def missing_extra(extra: str, user: str, module: str | None = None) -> UsageError:
    """What ``user`` needs (default: the first module of ``extra``), and what to type."""
    modules = EXTRAS[extra]
    named = modules[next(iter(modules)) if module is None else module]
    return UsageError(
        f"{user} needs {named}, which is not installed; type: pip install 'peakline[{extra}]'"
    )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
