"""A table of cases as one test: a row costs what it computes, not what a test of its own costs."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def each_row(names: str | Sequence[str], table: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for every row of ``table``, as one test: written as `pytest.mark.parametrize` is.

    All rows run, and every one that fails or skips is reported with its values. Fixtures are those
    of the one test: rows that need a directory or a patch of their own are for ``parametrize``.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [dict(zip(keys, [row] if len(keys) == 1 else row, strict=True)) for row in table]
    assert cases, "a table without rows tests nothing"

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        unknown = set(keys) - signature.parameters.keys()
        assert not unknown, f"{test.__name__} takes no {unknown}"

        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failed: list[BaseException] = []
            for case in cases:
                try:
                    test(*args, **fixtures, **case)
                except pytest.skip.Exception as skipped:
                    # One row cannot skip the others, and pytest knows no group of what skips.
                    failed.append(AssertionError(f"a row that skips: {skipped}"))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
                    failed.append(error)
                else:
                    continue
                failed[-1].add_note(f"in the row {case!r}")
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} rows failed", failed)

        # pytest reads here which fixtures the test takes.
        del run.__wrapped__
        run.__signature__ = signature.replace(
            parameters=[p for p in signature.parameters.values() if p.name not in keys]
        )
        return run

    return decorate
