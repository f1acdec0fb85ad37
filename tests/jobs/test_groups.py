"""What the groups of ranks are for."""

import gzip

from tests.each_row import each_row
from tests.jobs.answering import answer_in
from tests.jobs.simulated import SCENARIOS

from peakline.document.job import job_document, job_lines
from peakline.jobs.groups import kind_by_name


@each_row(
    "name, kind",
    [
        ("mesh_dp", "data"), ("mesh_dp_shard", "data"), ("DATA_PARALLEL_GROUP", "data"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "context"), ("mesh_tp", "tensor"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tensor"), ("PIPELINE_MODEL_PARALLEL_GROUP", "pipeline"),
        ("mesh_pp", "pipeline"), ("EXPERT_DATA_PARALLEL_GROUP", "expert"), ("ep_size_8", "expert"),
        ("CONTEXT_PARALLEL_GROUP", "context"), ("default_pg", ""), ("undefined", ""), ("", ""),
        ("dispatcher", ""), ("updates", ""),
    ],
)  # fmt: skip
def test_the_name_says_what_a_group_is_for(name, kind):
    assert kind_by_name("7", name) == kind


def test_a_mesh_is_counted_by_kind(tmp_path):
    SCENARIOS["tensor_data"](16, seed=1).healthy().write(tmp_path)
    answer = answer_in(tmp_path)
    lines = {what: text for _, what, text in job_lines(answer)}
    assert lines["groups"] == "4 data parallel groups of 4, 4 tensor parallel groups of 4"
    groups = job_document(answer)["job"]["groups"]
    assert {one["kind"] for one in groups if one["description"] == "mesh_tp"} == {"tensor"}


def test_ranks_that_only_pass_messages_are_a_pipeline(tmp_path):
    """Whatever the group is called."""
    SCENARIOS["pipeline_stage"](8, seed=1).healthy().write(tmp_path)
    for path in tmp_path.rglob("*.json*"):
        packed = path.name.endswith(".gz")
        text = path.read_bytes() if not packed else gzip.decompress(path.read_bytes())
        text = text.replace(b"mesh_dp", b"undefined_x").replace(b"mesh_pp", b"undefined_y")
        path.write_bytes(gzip.compress(text) if packed else text)
    groups = job_document(answer_in(tmp_path))["job"]["groups"]
    kinds = {one["description"]: one["kind"] for one in groups}
    assert kinds == {"default_pg": "", "undefined_x": "", "undefined_y": "pipeline"}
