"""Grouping on device planes: TPU step lines and what is grouped by them."""

from reference.case import Registry, allocate
from reference.xspace_builder import LineBuilder, PlaneBuilder, SpaceBuilder

DEVICE_CASES = Registry()


def _events(line: LineBuilder, *spans: tuple[int, int]) -> LineBuilder:
    for number, (begin, end) in enumerate(spans):
        line.event(str(number), begin, end - begin)
    return line


def _core(space: SpaceBuilder, name: str = "/device:TPU:0") -> PlaneBuilder:
    return space.plane(name)


def _launch(space: SpaceBuilder, runs: list[int], device: int = 0) -> None:
    """A host step per run that launches it on the device."""
    line = space.host().line()
    for number, run in enumerate(runs):
        begin = number * 1000
        line.event("train", begin, 900, {"_r": 1, "step_num": 50 + number})
        stats = {"device_ordinal": device, "queue_id": 0, "run_id": run}
        line.event("DoEnqueueProgram", begin + 100, 100, stats)
        allocate(line, begin + 150, number, allocator_name=None, index_on_host=device)


def _run(line: LineBuilder, run: int, begin: int, end: int) -> None:
    line.event(f"jit_step({run})", begin, end - begin, {"queue_id": 0, "run_id": run})


@DEVICE_CASES.add("grouping: TPU")
def tpu_lock_step(space: SpaceBuilder) -> None:
    """Without a link to the host the n-th steps of all cores are one group."""
    space.host().line().event("train", 0, 100, {"_r": 1})
    for core in (0, 1):
        plane = _core(space, f"/device:TPU:{core}")
        _events(plane.line("Steps"), (0, 100), (200, 300), (400, 500 + core))
        _events(plane.line("XLA Ops"), (10, 20), (90, 210), (150, 160), (450, 999), (2000, 2001))
    _events(_core(space, "/device:TPU:2").line("Steps"), (0, 50))


@DEVICE_CASES.add("grouping: TPU")
def tpu_lock_step_without_host(space: SpaceBuilder) -> None:
    """The same with no host plane."""
    plane = _core(space)
    _events(plane.line("XLA Modules"), (0, 100), (100, 300))
    _events(plane.line("XLA Ops"), (10, 20), (95, 105), (100, 100), (301, 302))


@DEVICE_CASES.add("grouping: TPU")
def tpu_steps_through_host_launches(space: SpaceBuilder) -> None:
    """Launches group modules, and the steps around them; the rest of the line is dropped."""
    _launch(space, [7, 8])
    plane = _core(space)
    _events(plane.line("Steps"), (0, 90), (100, 200), (300, 400), (500, 600))
    modules = plane.line("XLA Modules")
    _run(modules, 6, 10, 80)
    _run(modules, 7, 110, 190)
    _run(modules, 8, 310, 390)
    _events(plane.line("XLA Ops"), (20, 30), (120, 130), (205, 305), (320, 330), (520, 530))


@DEVICE_CASES.add("grouping: TPU")
def tpu_steps_merge(space: SpaceBuilder) -> None:
    """Neighbouring steps of one group become one that spans them and what lies between."""
    _launch(space, [7, 8])
    plane = _core(space)
    _events(plane.line("Steps"), (100, 200), (300, 400), (500, 600), (700, 800))
    modules = plane.line("XLA Modules")
    for begin, run in ((110, 7), (310, 7), (510, 8), (710, 7)):
        _run(modules, run, begin, begin + 50)
    _events(plane.line("XLA Ops"), (120, 130), (220, 230), (420, 430), (720, 730))


@DEVICE_CASES.add("grouping: TPU")
def tpu_modules_without_steps(space: SpaceBuilder) -> None:
    """An empty step line gives way to the modules."""
    _launch(space, [7, 8])
    plane = _core(space)
    plane.line("Steps")
    modules = plane.line("XLA Modules")
    for begin, run in ((100, 7), (200, 8), (300, 9)):
        _run(modules, run, begin, begin + 100)
    _events(plane.line("XLA Ops"), (120, 130), (199, 201), (310, 320), (500, 600))


@DEVICE_CASES.add("grouping: TPU")
def tpu_last_of_equal_lines(space: SpaceBuilder) -> None:
    """Of several step lines the last is the grouping line, even an empty one."""
    plane = _core(space)
    _events(plane.line("Steps"), (0, 100), (200, 300))
    _events(plane.line("Steps"), (1000, 1100))
    _events(plane.line("XLA Ops"), (10, 20), (1010, 1020))
    plane = _core(space, "/device:TPU:1")
    _events(plane.line("Steps"), (0, 100), (200, 300))
    plane.line("Steps")
    _events(plane.line("XLA Modules"), (10, 20), (210, 220))


@DEVICE_CASES.add("grouping: TPU")
def tpu_contexts_go_to_the_enclosing_step(space: SpaceBuilder) -> None:
    """Contexts of other lines belong to the first step that may enclose the event."""
    line = space.host().line()
    for number in range(4):
        stats = {"_r": 1, "_pt": 2, "_p": number}
        line.event("train", number * 100, 50, stats)
    plane = _core(space)
    _events(plane.line("Steps"), (0, 100), (100, 200), (200, 300))
    ops = plane.line("XLA Ops")
    for number, (begin, end) in enumerate(((10, 20), (90, 110), (100, 200), (250, 350))):
        ops.event("op", begin, end - begin, {"_ct": 2, "_c": number})


@DEVICE_CASES.add("grouping: TPU")
def tpu_steps_produce_for_the_host(space: SpaceBuilder) -> None:
    """A step's group spreads to host events that consume what the device produced."""
    line = space.host().line()
    line.event("callback", 5000, 100, {"_ct": 5, "_c": 1})
    allocate(line, 5050, 1)
    plane = _core(space)
    _events(plane.line("Steps"), (0, 100), (200, 300))
    plane.line("XLA Ops").event("send", 220, 10, {"_pt": 5, "_p": 1})


@DEVICE_CASES.add("grouping: TPU")
def tpu_roots_are_not_read_on_the_device(space: SpaceBuilder) -> None:
    """A stat _r on a step makes no root: without a link the cores go in lock step."""
    steps = _core(space).line("Steps")
    steps.event("late", 200, 50, {"_r": 2})
    steps.event("early", 100, 50, {"_r": 3})


@DEVICE_CASES.add("grouping: TPU")
def sparse_core_planes(space: SpaceBuilder) -> None:
    """Sparse cores have lines of their own names, and no groups of their own."""
    _events(_core(space).line("Steps"), (0, 100), (200, 300))
    space.host().line().event("train", 0, 100, {"_r": 1, "_pt": 2, "_p": 1})
    for name in ("/device:TPU:0 SparseCore 0", "/device:TPU:0 SparseCore Tile 1"):
        plane = _core(space, name)
        steps = plane.line("Sparse Core Steps")
        steps.event("0", 0, 100, {"_ct": 2, "_c": 1})
        steps.event("1", 200, 100)
        _events(plane.line("Sparse Core Modules"), (10, 20), (210, 220))
        _events(plane.line("Sparse Core Ops"), (10, 20), (210, 220))
    _events(_core(space, "/device:TPU:0 SparseCore").line("Sparse Core Steps"), (0, 100))


@DEVICE_CASES.add("grouping: TPU")
def unknown_tpu_plane(space: SpaceBuilder) -> None:
    """A TPU plane that is no core has no part in the forest; groups in the file still count."""
    _events(_core(space).line("Steps"), (0, 100), (200, 300))
    plane = _core(space, "/device:TPU:0 Other")
    steps = plane.line("Steps")
    steps.event("0", 0, 100)
    steps.event("1", 200, 100, {"group_id": 4})
    _events(plane.line("XLA Ops"), (10, 20), (210, 220))


@DEVICE_CASES.add("grouping: TPU")
def counter_lines_are_left_alone(space: SpaceBuilder) -> None:
    """Counter samples get no group."""
    plane = _core(space)
    _events(plane.line("Steps"), (0, 100))
    _events(plane.line("_counters_"), (10, 10))
    _events(plane.line("XLA Ops"), (10, 10))


@DEVICE_CASES.add("grouping: TPU")
def gpu_plane_beside_a_tpu(space: SpaceBuilder) -> None:
    """With a TPU in the file other devices are grouped by overlap too, where they have steps."""
    line = space.host().line()
    line.event("train", 0, 1000, {"_r": 1})
    line.event("launch", 100, 50, {"correlation_id": 3})
    _events(_core(space).line("Steps"), (0, 100), (200, 300))
    gpu = space.plane("/device:CUSTOM:other")
    stream = gpu.line("Stream")
    stream.event("kernel", 100, 50, {"correlation_id": 3})
    stream.event("kernel", 210, 10, {"correlation_id": 4})
    _events(gpu.line("XLA Modules"), (90, 160), (200, 300))
    _events(gpu.line("other"), (100, 110), (205, 206))


@DEVICE_CASES.add("grouping: TPU")
def loop_op_in_a_tpu_capture(space: SpaceBuilder) -> None:
    """A loop op's name leaves TPU lines without groups as well."""
    space.host().event_id("WhileOp-StartBody")
    plane = _core(space)
    _events(plane.line("Steps"), (0, 100))
    _events(plane.line("XLA Modules"), (10, 20))


@DEVICE_CASES.add("grouping: TPU")
def tpu_groups_from_an_earlier_grouping(space: SpaceBuilder) -> None:
    """A step line with old groups keeps those of events that nothing reaches."""
    _launch(space, [7])
    plane = _core(space)
    steps = plane.line("Steps")
    steps.event("0", 0, 100, {"group_id": 30})
    steps.event("1", 200, 100)
    steps.event("2", 400, 100, {"group_id": 31})
    _run(plane.line("XLA Modules"), 7, 210, 290)
    _events(plane.line("XLA Ops"), (10, 20), (210, 220), (410, 420))
