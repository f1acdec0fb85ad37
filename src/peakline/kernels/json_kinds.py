"""Kinds of JSON values, as the scanner notes them."""

from __future__ import annotations

__all__ = ["ABSENT", "ARRAY", "ESCAPED", "FALSE", "NULL", "NUMBER", "OBJECT", "STRING", "TRUE"]

ABSENT, NULL, FALSE, TRUE, NUMBER, STRING, ESCAPED, ARRAY, OBJECT = range(9)
"""No such member, then in JSON's words; ESCAPED is a string with a backslash in it. NaN and
Infinity are numbers."""
