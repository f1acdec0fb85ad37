"""``peakline fit``: in how much memory a recorded program runs, and with which settings."""

import gzip
import json
import re
from pathlib import Path

import pytest

import peakline as package
from peakline.replay.requests import MIB

DATA = Path(__file__).parents[1] / "data"
TILES = DATA / "fit" / "tile_cache" / "65536.xplane.pb.gz"
"""Runs at 65, 72 and 73, and from 86 MiB on, and nowhere between."""
CNN = DATA / "fit" / "keras_cnn" / "65536.xplane.pb.gz"
TORCH = DATA / "fit" / "torch" / "shifting" / "snapshot_start.pickle.gz"


def answer(peakline, *words):
    run = peakline("fit", *words, "--json")
    assert run.code == 0, run.err
    return json.loads(run.out)


def test_the_set_of_limits_is_said_with_its_holes(peakline):
    run = peakline("fit", TILES)
    assert run.code == 0
    lines = [line.strip() for line in run.out.splitlines()]
    assert any(
        line.startswith("fits ") and line.endswith("runs at 65 MiB, 72 to 73 MiB, safe from 86 MiB")
        for line in lines
    )
    assert any(
        line.startswith("exact ") and line.endswith("yes, for the recorded order of requests")
        for line in lines
    )
    assert any(line.startswith("decided at 85 MiB") for line in lines)
    assert any(line.startswith("replay ") and "recorded addresses" in line for line in lines)


def test_the_document_has_the_shape_that_is_promised(peakline):
    document = answer(peakline, TILES, "--limit", "80MiB", "--limit", "72MiB")
    (one,) = document["allocators"]
    assert one["model"] == "bfc"
    assert one["fits"] == [
        [65 * MIB, 65 * MIB], [72 * MIB, 73 * MIB], [86 * MIB, None],
    ]  # fmt: skip
    assert (one["smallest_limit_bytes"], one["safe_from_bytes"]) == (65 * MIB, 86 * MIB)
    assert one["exact"] is True
    assert one["replay"]["proved"] is True
    assert one["replay"]["equal_addresses"] == one["replay"]["allocations"]
    fails, fits = one["limits"]
    assert (fails["limit_bytes"], fails["fits"], fits["fits"]) == (80 * MIB, False, True)
    assert fits["fails_at"] is None
    assert fails["fails_at"]["op"]
    assert fails["fails_at"]["bytes"] <= fails["fails_at"]["rounded_bytes"]
    assert fails["free_bytes"] >= fails["largest_free_bytes"]
    assert fails["cause"] in {"growth", "fragmentation", "unsplit"}
    assert one["deciding_request"]["limit_bytes"] == 85 * MIB
    assert {"allocators", "not_replayed", "profile", "warnings"} <= document.keys()


def test_settings_are_replayed(peakline):
    (growing,) = answer(peakline, CNN)["allocators"]
    (whole,) = answer(peakline, CNN, "--set", "allow_growth=false")["allocators"]
    assert whole["settings"]["allow_growth"] is False
    assert whole["safe_from_bytes"] < growing["safe_from_bytes"]
    assert growing["alternatives"][0]["safe_from_bytes"] == whole["safe_from_bytes"]
    safe = [one["safe_from_bytes"] for one in growing["alternatives"]]
    assert safe == sorted(safe)


def test_what_fits_under_a_limit_comes_first(peakline):
    (one,) = answer(peakline, CNN, "--limit", "70MiB")["allocators"]
    fits = [other["fits"] for other in one["alternatives"]]
    assert fits[0] is True
    assert fits == sorted(fits, key=lambda value: value is not True)
    assert "AT 70 MIB" in peakline("fit", CNN, "--limit", "70MiB").out


def test_several_threads_make_it_a_bound(peakline):
    (one,) = answer(peakline, CNN)["allocators"]
    assert one["threads"] > 1
    assert one["exact"] is False
    assert "threads allocate" in one["reason"]
    assert "fits without waiting" in peakline("fit", CNN).out


def test_recordings_of_one_program_give_a_range(peakline):
    paths = sorted((DATA / "fit" / "beam_decoding").glob("65536*.gz"))
    document = answer(peakline, *paths)
    (together,) = document["together"]
    limits = [one["allocators"][0]["safe_from_bytes"] for one in document["recordings"]]
    assert together["recordings"] == len(paths) == 2
    assert together["safe_from_bytes"] == [min(limits), max(limits)]
    assert "2 recordings: the smallest limit is" in peakline("fit", *paths).out


def test_another_batch_is_an_estimate(peakline):
    (one,) = answer(peakline, CNN, "--batch", "32:64")["allocators"]
    (batch,) = one["batches"]
    assert (batch["recorded"], batch["wanted"]) == (32, 64)
    assert batch["safe_from_bytes"] > one["safe_from_bytes"]
    assert batch["scaled_bytes"] > 0
    (same,) = answer(peakline, CNN, "--batch", "32:32")["allocators"]
    assert same["batches"][0]["safe_from_bytes"] == one["safe_from_bytes"]
    (largest,) = answer(peakline, CNN, "--batch", "32", "--limit", "160MiB")["allocators"]
    result = largest["batches"][0]
    assert result["fits"] is True
    assert result["wanted"] > 32
    assert "an estimate" in peakline("fit", CNN, "--batch", "32:64").out


def test_a_snapshot_of_pytorch(peakline):
    document = answer(peakline, TORCH, "--set", "expandable_segments=True", "--limit", "1GiB")
    (one,) = document["allocators"]
    assert one["model"] == "pytorch"
    assert one["replay"]["proved"]
    assert one["settings"]["expandable_segments"] is True
    assert one["limits"][0]["fits"] is True
    (plain,) = answer(peakline, TORCH)["allocators"]
    assert plain["exact"]
    assert any(other["settings"]["expandable_segments"] for other in plain["alternatives"])


def test_compiled_programs_need_what_xla_assigned(peakline):
    document = answer(peakline, DATA / "xla_dump", "--limit", "64KiB")
    assert {one["model"] for one in document["allocators"]} == {"xla"}
    for one in document["allocators"]:
        assert one["limits"][0]["fits"] == (one["recorded_peak_bytes"] <= 64 * 1024)
    assert "temporaries lie where" in peakline("fit", DATA / "xla_dump").out


def test_what_cannot_be_replayed_says_why(peakline):
    report = peakline("fit", DATA / "oom_report" / "tf_bfc_oom.log.gz")
    assert report.code == 0
    assert "cannot be replayed: the file is of one moment" in report.out
    log = peakline("fit", DATA / "memory_log" / "eager_default_allocator.log.gz")
    assert "it is another one" in log.out


def test_a_profile_without_memory_is_one_line(peakline):
    run = peakline("fit", DATA / "graph_def" / "cnn.pb.gz")
    assert run.code in {0, 3}
    assert len(run.out.splitlines() + run.err.splitlines()) == 1


def test_wrong_words_are_one_line_and_exit_2(peakline):
    for words, said in (
        (("--set", "allow_growth"), "write NAME=VALUE"),
        (("--set", "growth=1"), "allow_growth"),
        (("--set", "allow_growth=perhaps"), "true or false"),
        (("--set", "internal_fragmentation_fraction=2"), "0 to 1"),
        (("--batch", "many"), "32:64"),
        (("--batch", "0"), "32:64"),
        (("--batch", "31337"), "multiple of 31337"),
        (("--limit", "much"), "much"),
    ):
        run = peakline("fit", CNN, *words)
        assert run.code == 2, words
        assert said in run.err, words
    run = peakline("fit", TORCH, "--set", "max_split=3")
    assert run.code == 2
    assert "max_split_size_mb" in run.err
    run = peakline("fit", CNN, "--allocator", "GPU_7")
    assert run.code == 3
    assert "bfc_cpu_allocator_for_gpu" in run.err


def test_in_python_and_as_a_tool():
    with package.open(CNN) as profile:
        (fit,) = profile.fit(limits=[80 * MIB], settings={"allow_growth": False})
        assert fit.under[0].fits is True
        document = json.loads(
            profile.tool("fit", limit=["80MiB"], settings=["allow_growth=false"]).content
        )
        assert document["allocators"] == [json.loads(json.dumps(fit.as_json()))]


def test_the_gate_of_a_limit(peakline):
    assert peakline("check", TILES, "--max-limit", "86MiB").code == 0
    run = peakline("check", TILES, "--max-limit", "72MiB")
    assert run.code == 1
    assert "at that limit it runs, with a little more not" in run.err
    unproved = peakline("check", DATA / "memory_log" / "eager_default_allocator.log.gz",
                        "--max-limit", "1GiB")  # fmt: skip
    assert unproved.code == 1
    assert "cannot be measured" in unproved.err


def test_summary_says_it_where_memory_is_scarce(peakline):
    (scarce,) = (DATA / "fit" / "sparse_embedding").glob("24.xplane.pb.gz")
    run = peakline("summary", scarce)
    assert any(line.split()[:2] == ["it", "runs"] for line in run.out.splitlines())
    assert json.loads(peakline("summary", scarce, "--json").out)["fits"][0]["safe_from_bytes"]
    assert json.loads(peakline("summary", TILES, "--json").out)["fits"] == []


FAILED = DATA / "fit" / "failed" / "oom.pickle"
"""64 GiB live on a device of 80 GiB, and a request of 5 GiB that failed."""


def test_the_size_that_failed_is_no_size_that_fits(peakline):
    document = answer(peakline, FAILED, "--limit", "66GiB", "--limit", "70GiB")
    [one] = document["allocators"]
    assert one["failed_request"]["needed_bytes"] == (64 + 5) << 30
    assert (one["smallest_limit_bytes"], one["safe_from_bytes"]) == ((64 + 5) << 30, None)
    assert (one["fits"], one["exact"]) == ([], False)
    assert [limit["fits"] for limit in one["limits"]] == [False, None]
    assert one["limits"][0]["fails_at"]["bytes"] == 5 << 30
    assert one["limits"][0]["cause"] == "memory"
    assert one["deciding_request"]["limit_bytes"] == (69 << 30) - MIB
    text = peakline("fit", FAILED).out
    assert text.startswith("needs at least 70,656 MiB\n")
    assert "SAFE FROM" not in text
    assert "runs" not in text
    assert "it needs  at least 70,656 MiB: a request of 5.0 GiB failed" in peakline(FAILED).out


@pytest.mark.nightly
def test_several_recordings_of_which_one_failed_are_safe_from_nowhere(peakline):
    document = answer(peakline, TORCH, FAILED)
    [together] = [one for one in document["together"] if one["recordings"] == 2]
    assert together["safe_from_bytes"] is None
    assert "all fit is not known" in peakline("fit", TORCH, FAILED).out


def test_the_gate_does_not_pass_what_failed(peakline):
    for size, measured in (("60GiB", "69.0 GiB"), ("80GiB", "not known")):
        run = peakline("check", FAILED, "--max-limit", size)
        assert run.code == 1
        assert measured in run.out
        assert "a request of 5.0 GiB failed" in run.out


def test_a_memory_log_with_a_failed_request_is_a_lower_bound(peakline, tmp_path):
    log = tmp_path / "job.log"
    parts = ["memory_log/tf1_control_flow.log.gz", "oom_report/tf_bfc_oom.log.gz"]
    log.write_bytes(b"".join(gzip.decompress((DATA / part).read_bytes()) for part in parts))
    [one] = answer(peakline, log)["allocators"]
    # "2.00MiB (rounded to 2097152)", and the chunks that were in use.
    in_use = sum(int(size) for size in re.findall(rb"InUse at \w+ of size (\d+)", log.read_bytes()))
    assert one["failed_request"]["needed_bytes"] == in_use + 2097152
    assert one["safe_from_bytes"] is None
    assert not one["exact"]
