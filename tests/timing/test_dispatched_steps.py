"""Marks around steps that only hand their work to XLA's runtime on the host, and one that waits."""

from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

US = 10**6
STEPS, RUN, DISPATCH = 24, 6_000, 30
"""How many steps, how long a run of the program takes, and how long handing it over (us)."""


def job(*, reads=(), launches=1, then=0, waits=False):
    """Steps that launch a run each; those of ``reads`` launch so many, wait until all are done and
    do something else for ``then`` us; where one ``waits``, so do the others, for their own run.
    """
    builder = SpaceBuilder()
    host = builder.host()
    main, pool = host.line("python"), host.line("tf_XLAPjRtCpuClient/7")
    now = free = run = 0
    for step in range(STEPS):
        is_read, begin = step in reads, now
        count = launches if is_read else 1
        calls = [now + DISPATCH * k for k in range(count)]
        now += DISPATCH * count
        for _ in range(count):
            free = max(free, now)
            pool.event("dot.3", free * US, RUN * US, {"run_id": 7 - run, "hlo_op": "dot.3"})
            free, run = free + RUN, run + 1
        if is_read or waits:
            now = free
        now += then if is_read else 0
        main.event("train", begin * US, (now - begin) * US, {"step_num": step, "_r": 1})
        for call in calls:
            main.event("PjitFunction(step)", call * US, (DISPATCH - 1) * US)
    return builder


@each_row(
    ("given", "is_alarm"),
    [
        ({"reads": range(9, STEPS, 10)}, False),
        ({"reads": [9]}, False),
        ({"reads": range(3, STEPS, 4)}, False),
        # The steps that read do more: so many launches, or something else on the host.
        ({"reads": range(5, STEPS, 6), "launches": 15}, True),
        ({"reads": range(5, STEPS, 6), "then": 50_000}, True),
        # All wait for their own.
        ({"reads": range(5, STEPS, 6), "then": 50_000, "waits": True}, True),
        ({"reads": range(5, STEPS, 6), "launches": 15, "waits": True}, True),
    ],
)
def test_a_step_that_waits_for_what_the_others_launched_is_not_slow(opened, given, is_alarm):
    kinds = {one.kind for one in opened(job(**given)).time().findings}
    assert ("step_variation" in kinds) is is_alarm
