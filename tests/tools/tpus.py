"""Steps of TPUs made by hand: what each core does, one op after the other."""

from tests.reference.xspace_builder import SpaceBuilder, Uint

MS = 10**9


def tpu_space(*cores, steps=2, length=10, sparse=()):
    """A file of ``steps`` steps of ``length`` ms; what a core has no op for it idles.

    A core is a list of ``(category, ms)``; those of ``sparse`` are SparseCores.
    """
    builder = SpaceBuilder()
    for place, ops in enumerate([*cores, *sparse]):
        is_sparse, number = place >= len(cores), place % len(cores)
        name = f"/device:TPU:{number}" + (f" SparseCore {number}" if is_sparse else "")
        # Field 2 of CoreDetails is the ordinal.
        details = {"device_type_string": "TPU v4", "core_details": bytes([0x10, number])}
        plane = builder.plane(name, details)
        marks = plane.line("Sparse Core Steps" if is_sparse else "Steps")
        line = plane.line("Sparse Core Ops" if is_sparse else "XLA Ops")
        for step in range(steps):
            at = 2 * step * length * MS
            marks.event(str(step), at, length * MS)
            for symbol, (category, took) in enumerate(ops, 1):
                metadata = plane.message.event_metadata[plane.event_id(f"{category}.{symbol}")]
                if not metadata.stats:
                    plane.add_stats(metadata, {"program_id": Uint(7), "symbol_id": Uint(symbol),
                                               "hlo_category": category})  # fmt: skip
                line.event(f"{category}.{symbol}", at, took * MS)
                at += took * MS
    return builder.space
