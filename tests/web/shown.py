"""Numbers as the page shows them, read back, so that they can be compared with the service's."""

from typing import Any

import pytest

_UNITS = {
    "s": 1e12, "ms": 1e9, "µs": 1e6, "ns": 1e3, "ps": 1.0, "B": 1.0, "KiB": 1024.0,
    "MiB": 1024.0**2, "GiB": 1024.0**3, "TiB": 1024.0**4,
}  # fmt: skip


def number_of(text: str) -> float:
    """Picoseconds, bytes, a share or a count: ``12.3 ms``, ``1.5 GiB``, ``23.8%``, ``1,024``."""
    text = text.strip().replace(",", "")
    if text.endswith("%"):
        return float(text[:-1]) / 100
    number, _, unit = text.partition(" ")
    return float(number) * (_UNITS[unit] if unit else 1.0)


def almost(value: float) -> Any:
    """``value`` as nearly as it is shown: to four digits, a share to a tenth of a percent."""
    return pytest.approx(value, rel=6e-3, abs=6e-4 if abs(value) <= 1 else None)


def facts(place: Any) -> dict[str, str]:
    """The terms and descriptions below a locator, each description's first line."""
    terms, values = place.evaluate(
        """(place) => ["dt", "dd"].map((tag) =>
          [...place.querySelectorAll(tag)].map((one) => one.innerText))"""
    )
    return {term: value.splitlines()[0].strip() for term, value in zip(terms, values, strict=True)}


def fact(place: Any, name: str) -> float:
    """One of `facts`, as a number."""
    return number_of(facts(place)[name])


def rows_of(page: Any, label: str) -> list[dict[str, str]]:
    """The rows of a table that are drawn, by the titles of its columns."""
    table = page.get_by_role("grid", name=label, exact=True)
    return table.evaluate(
        """(table) => {
          const heads = [...table.querySelectorAll("[role=columnheader]")].map((head) =>
            (head.querySelector("button")?.firstChild ?? head.firstChild).textContent);
          return [...table.querySelectorAll(".row")].map((row) => Object.fromEntries(
            [...row.children].map((cell, place) => [heads[place], cell.textContent])));
        }"""
    )
