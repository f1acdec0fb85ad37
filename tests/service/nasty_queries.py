"""Queries that take all they can get: of memory, of time, of depth."""

# ruff: noqa: S608 (queries are what this file is about)
import random
from collections.abc import Callable

_A, _B = "repeat('a', 100000)", "repeat('b', 100000)"
REPLACED = f"select length(replace({_A}, 'a', {_B}))"
REPLACED_BY_PATTERN = f"select length(regexp_replace({_A}, 'a', {_B}, 'g'))"
UNIONS = " union all ".join(["select 1"] * 55_000)


def tables_of_tables(many: int, made_of: str = "select a.x from {0} a, {0} b") -> str:
    """``many`` subqueries, each of the one before, that are planned where they stand."""
    made = ["c0 as not materialized (select 1 as x)"]
    made += [f"c{i} as not materialized ({made_of.format(f'c{i - 1}')})" for i in range(1, many)]
    return f"with {', '.join(made)} select count(*) from c{many - 1}"


def nasty_query(random: random.Random) -> str:
    """One of many kinds, of a random size."""
    size = 10 ** random.randint(3, 10)
    times = random.randint(2, 900_000)
    text = random.choice(["'x'", "'é'", "repeat('ab', 50000)", f"repeat('x', {size})", "name"])
    other = random.choice([_A, _B, "repeat(name, 1000)", f"repeat('y', {size})"])
    kinds: list[Callable[[], str]] = [
        lambda: f"select length(replace({other}, 'a', {text})) from steps",
        lambda: f"select length(regexp_replace({other}, '.', {text}, 'g')) from steps",
        lambda: f"select lpad({text}, {size}, 'y'), rpad({text}, {size}, 'y') from steps",
        lambda: f"select {random.choice(['levenshtein', 'jaccard', 'mismatches'])}({text}, {other})"
        " from steps",
        lambda: f"select printf('%{size}d', 1), format('{{:{size}}}', 1), bitstring('1', {size})",
        lambda: f"select list_transform(range({size}), lambda x: range({size}))",
        lambda: f"select list_sort(list_resize([1], {size})), list_zip(range({size}), range(9))",
        lambda: f"select string_agg({text}), list({other}) from range({size}), steps",
        lambda: f"select count(*) from range({size}) a, range({size}) b, steps c, steps d",
        lambda: f"select distinct range, {text} from range({size}), steps order by 1 desc",
        lambda: f"select sum(range) over (order by range desc) from range({size})",
        lambda: f"with recursive t as (select 1 n union all select n + 1 from t where n < {size})"
        " select max(n) from t",
        lambda: "with recursive t as (select {} n union all select n || n from t) select n from t"
        .format(text if text != "name" else "'x'"),
        lambda: f"pivot (select range % {times} r from range({size})) on r using count(*)",
        lambda: f"select unnest(range({size})), unnest([{text}]) from steps",
        lambda: f"select '{'[' * times}{']' * times}'::json->'$[0]'"[:900_000],
        lambda: f"select {'(' * (times // 2)}1{')' * (times // 2)}",
        lambda: f"select {'not ' * (times // 4)}true",
        lambda: f"select {'+'.join(['1'] * (times // 2))}",
        lambda: f"select 1 in ({','.join(map(str, range(times // 8)))})",
        lambda: "select " + ", ".join(f"{i} as c{i}" for i in range(times // 16)),
        lambda: " union ".join(["select 1"] * (times // 18)),
        lambda: " except ".join(["from steps"] * (times // 20)),
        lambda: f"from {'(from ' * (times // 9)}steps{')' * (times // 9)}",
        lambda: "select " + "case when true then " * (times // 30) + "1" + " end" * (times // 30),
        lambda: tables_of_tables(random.randint(10, 60)),
        lambda: tables_of_tables(random.randint(10, 60), "select x from {0} union all from {0}"),
        lambda: f"explain analyze {nasty_query(random)}",
        lambda: f"from query('{nasty_query(random)[:100_000].replace(chr(39), chr(39) * 2)}')",
        lambda: "".join(random.choices("select from steps () * ,'\"\\\0\n;-", k=times // 100)),
    ]  # fmt: skip
    return random.choice(kinds)()
