"""Workers of a DataLoader that are started for each epoch, in traces made by hand."""

from tests.formats.chrome_traces import event, opened

LOADER = "torch/utils/data/dataloader.py"


def epochs(number, *, every):
    """Epochs of 100 us: 30 to start two workers, 10 for the first batch, 20 to end them, where
    workers are started in ``every`` one, else in the first.
    """
    rows = [event("X", 0, "train.py(4): epochs", dur=100 * number, cat="python_function")]
    for epoch in range(number):
        at = 100 * epoch
        if every or not epoch:
            rows.append(event("X", at, f"{LOADER}(1101): __init__", dur=30, cat="python_function"))
            rows += [event("X", at + 1 + 10 * n, "multiprocessing/process.py(110): start", dur=9,
                           cat="python_function") for n in range(2)]  # fmt: skip
        rows += [event("X", at + 35 + 15 * n, f"{LOADER}(720): __next__", dur=10,
                       cat="python_function") for n in range(2)]  # fmt: skip
        if every:
            rows.append(event("X", at + 75, f"{LOADER}(1606): _shutdown_workers", dur=20,
                              cat="python_function"))  # fmt: skip
    return rows


def test_workers_that_are_started_for_each_epoch(tmp_path):
    with opened(tmp_path, epochs(4, every=True)) as profile:
        (finding,) = [one for one in profile.time().findings if one.kind == "workers_restarted"]
    evidence = finding.evidence
    assert (evidence["iterators"], evidence["workers"], evidence["function"]) == (4, 8, "epochs")
    # All but one of four must not be: of 50 us in 100; the first batch takes 10 more.
    assert abs(evidence["gain_share"] - 0.75 * 0.50) < 1e-9
    assert abs(evidence["most_gain_share"] - 0.60) < 1e-9


def test_workers_that_stay(tmp_path):
    with opened(tmp_path, epochs(4, every=False)) as profile:
        assert "workers_restarted" not in [one.kind for one in profile.time().findings]
