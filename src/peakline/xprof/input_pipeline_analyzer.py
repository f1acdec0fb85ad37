"""The ``input_pipeline_analyzer`` tool: steps, what they wait for, and the ops that bring data.

An array of five tables in the shape of XProf's tool of the same name: the slowest core to be fed
per step (TPUs only), steps, the host's input ops, recommendations, diagnostics. As CSV the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.toolbox.parameters import XprofParameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import Column, DataTable, tables_csv, tables_json
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.rules.host_ops import HostInput, InputOps
    from peakline.xprof.rules.step_model import HostSteps, StepDatabase

    _Part = tuple[HostSteps, HostInput]

_DATASET = "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#"
_RECORDS = (
    "https://www.tensorflow.org/api_docs/python/tf/data/TFRecordDataset#class_tfrecorddataset"
)
_GUIDE = "https://www.tensorflow.org/programmers_guide/datasets"


class InputPipelineParameters(XprofParameters):
    """The parameters; text is accepted for every value."""


def _partial(profile: Profile, parameters: InputPipelineParameters) -> _Part:
    """What one host contributes: its steps and its ops."""
    compatible = parameters.compatible == "xprof"
    return rules.host_steps(profile, compatible=compatible), rules.host_input(
        profile, compatible=compatible
    )


def _combine(
    parts: Sequence[tuple[str, _Part]], parameters: InputPipelineParameters, output_format: str
) -> bytes:
    database = rules.combine_steps([(host, steps) for host, (steps, _) in parts])
    ops = rules.combine_inputs(ops for _, (_, ops) in parts)
    compatible = parameters.compatible == "xprof"
    tables = _tables(database, ops, compatible=compatible)
    if output_format == "csv":
        # XProf writes the first table, which has nothing in it but on TPUs.
        return tables_csv(tables[0 if compatible else 1])
    return tables_json(*tables)


def _tables(database: StepDatabase, host: HostInput, *, compatible: bool) -> list[DataTable]:
    steps, _, ops = rules.analysed(database, host, compatible=compatible)
    slowest = _slowest(database) if database.hardware == rules.TPU else rules.NoTable(())
    return [
        slowest, steps, _ops_table(ops), _recommendations(),
        rules.diagnostics_table(rules.step_warnings(database)),
    ]  # fmt: skip


def _slowest(database: StepDatabase) -> DataTable:
    """Of every step of TPUs the core that was slowest to be fed."""
    steps = rules.tpu_steps_of(database)
    columns = [Column(str(number), "string", str(number)) for number in range(len(steps))]
    return DataTable(
        [Column("index", "string", "Index"), *columns],
        [
            ["Step number", *(str(step.number) for step in steps)],
            ["Core name", *(step.slowest_infeed or "unknown" for step in steps)],
        ],
    )


def _ops_table(result: InputOps) -> DataTable:
    def share(ps: int) -> float:
        return 100.0 * (ps / result.total_self_ps if result.total_self_ps else 0.0) / 100.0

    of_input = "(as % of total input-processing time)"
    return DataTable(
        (
            Column("opName", "string", "Input Op"),
            Column("count", "number", "Count"),
            Column("timeInMs", "number", "Total Time (in ms)"),
            Column("timeInPercent", "number", f"Total Time {of_input}"),
            Column("selfTimeInMs", "number", "Total Self Time (in ms)"),
            Column("selfTimeInPercent", "number", f"Total Self Time {of_input}"),
            Column("category", "string", "Category"),
        ),
        [
            [
                op.name, op.count, op.total_ps / 1e9, share(op.total_ps), op.self_ps / 1e9,
                share(op.self_ps), op.category,
            ]
            for op in result.ops
        ],
        {
            "enqueue_us": f"{result.enqueue_us:.3f}",
            "demanded_file_read_us": f"{result.demanded_us:.3f}",
            "advanced_file_read_us": f"{result.advanced_us:.3f}",
            "preprocessing_us": f"{result.preprocessing_us:.3f}",
            "unclassified_nonequeue_us": f"{result.unclassified_us:.3f}",
        },
    )  # fmt: skip


def _recommendations() -> DataTable:
    places = (_DATASET + "prefetch", _DATASET + "interleave", _RECORDS)
    ahead, demanded = (
        ", ".join(map(rules.link, places, texts))
        for texts in (
            ("prefetch size", "interleave cycle_length", "reader buffer_size"),
            ("prefetch", "interleave", "reader buffer"),
        )
    )
    advice = (
        (
            "Enqueuing data: you may want to combine small input data chunks into fewer but larger "
            "chunks."
        ),
        (
            "Data preprocessing: you may increase num_parallel_calls in "
            f"{rules.link(_DATASET + 'map', 'Dataset map()')} or preprocess the data OFFLINE."
        ),
        (
            "Reading data from files in advance: you may tune parameters in the following tf.data "
            f"API ({ahead})"
        ),
        (
            "Reading data from files on demand: you should read data IN ADVANCE using the "
            f"following tf.data API ({demanded})"
        ),
        (
            "Other data reading or processing: you may consider using the "
            f"{rules.link(_GUIDE, 'tf.data API')} (if you are not using it now)"
        ),
    )
    return DataTable((Column("link", "string", "link"),), [[text] for text in advice])


TOOL = Tool(
    name="input_pipeline_analyzer",
    doc="Steps, what they wait for, and the host's ops that bring data (tables).",
    parameters=InputPipelineParameters,
    formats=("json", "csv"),
    shows=(("events",), ("op_runs",)),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
