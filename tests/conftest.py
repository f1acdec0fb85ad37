"""Shared fixtures: where the repository and its sample data are, and a clean environment."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from peakline.safe_text import RUNNERS
from tests.processor import spent
from tests.sweeps import sweep

_ROOT = Path(__file__).resolve().parent.parent
_BEGIN = pytest.StashKey[float]()
_SPENT = pytest.StashKey[float]()
_SESSIONS = _ROOT / "tests" / "data" / "sessions"

# What a verb prints into the log of a job is tests/guard's: everywhere else it is the same on every
# machine, also where a job runs the tests.
for _name in RUNNERS:
    os.environ.pop(_name, None)

# gRPC writes what it does in threads of its own, beside what the tests print.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Whether a test passes is not a matter of pace or luck: no example has to be quick, and the same
# ones are tried every time: a few of them, by `make nightly` all. `make soak` tries others
# (--hypothesis-profile=random).
settings.register_profile(
    "many", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("few", settings.get_profile("many"))
settings.register_profile("random", settings.get_profile("many"), derandomize=False)
settings.load_profile("few")
_FEW, _LEAST = 5, 10
"""Of so many examples one is among the few, but not fewer than so many."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """For `make soak`, which is bounded in time."""
    parser.addoption(
        "--stop-after", type=float, metavar="SECONDS", help="skip the tests that have not begun"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let interrupts interrupt: a shell starts its background jobs with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_BEGIN] = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep to ``--stop-after``; what came before the first test is none's."""
    if _SPENT not in item.config.stash:
        item.config.stash[_SPENT] = spent()
    seconds = item.config.getoption("--stop-after")
    if seconds is not None and time.monotonic() - item.config.stash[_BEGIN] > seconds:
        pytest.skip("no time was left for it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try few examples, of tests too that say how many, unless more are wanted."""
    if settings.get_current_profile_name() != "few":
        return
    functions = (getattr(item, "function", None) for item in items)
    for test in {one for one in functions if is_hypothesis_test(one)}:
        own = test._hypothesis_internal_use_settings
        few = max(own.max_examples // _FEW, min(own.max_examples, _LEAST))
        test._hypothesis_internal_use_settings = settings(own, max_examples=few)


def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays: no collection looks at it again, as one does when
    a server of gRPC ends. Others are few: profiles stay open and have no cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note what processors did for the test since the one before ended: tests/budget.toml."""
    report = yield
    if report.when == "teardown":
        now, before = spent(), item.config.stash[_SPENT]
        item.config.stash[_SPENT] = now
        report.user_properties.append(("processor_seconds", f"{max(now - before, 0):.3f}"))
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``sample`` runs once for every sample profile (see tests/data), for those
    that are not chosen nightly.
    """
    if "sample" in metafunc.fixturenames:
        paths = sorted(_SESSIONS.glob("*/plugins/profile/*/*.xplane.pb*"))
        ids = [f"{path.relative_to(_SESSIONS).parts[0]}-{path.name}" for path in paths]
        metafunc.parametrize("sample", sweep(paths), ids=ids)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage collector comes by in time: what is in cycles stays."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that opens a space (a message, its builder or its bytes) as a profile."""
    import peakline

    with ExitStack() as profiles:

        def open_space(space: Any, name: str = "") -> Any:
            path = tmp_path / (name or f"host{len(list(tmp_path.iterdir()))}.xplane.pb")
            message = getattr(space, "space", space)
            path.write_bytes(message if isinstance(message, bytes) else message.SerializeToString())
            return profiles.enter_context(peakline.open(path))

        yield open_space


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return _ROOT


@pytest.fixture(scope="session")
def sessions() -> Path:
    """The folder of the sample log directories, one folder each."""
    return _SESSIONS
