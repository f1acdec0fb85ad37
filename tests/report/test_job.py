"""What a report says of a job of many ranks."""

import gzip
import re
from pathlib import Path

import numpy as np
from tests.jobs.answering import answer_in
from tests.report.document import job_report_of

from peakline.document.job import headline, ranks_table, root_lines
from peakline.document.model import capital


def test_the_report_of_a_job_says_what_the_terminal_does(read):
    page, answer = read("jobs/ddp_host/faulty")
    (lead,) = page.texts("p", **{"class": "verdict"})
    assert lead == capital(headline(answer))
    assert ("Warning " + capital(root_lines(answer, answer.roots[0])[0])) in page.texts("h3")
    rows = {row[0] for row in ranks_table(answer).rows}
    assert rows == {"rank 0", "rank 1"} <= set(page.texts("th", scope="row"))
    assert [label for label in page.drawings if label.startswith("The own work of each rank")]
    assert "ranks 0-1: no memory events in this profile" in page.text


def test_the_cells_of_a_job_are_of_its_ranks_and_steps(read):
    page, answer = read("jobs/ddp_host/faulty")
    work = answer.work.work_ps
    paths = [attrs["d"] for attrs, _ in page.all("path") if attrs.get("fill-opacity")]
    cells = [path.count("M") for path in paths]
    # The second half are those of the legend.
    assert sum(cells[:6]) == np.isfinite(work).sum() == 6
    # The darkest are those of the slow rank, below the other.
    darkest = re.findall(r"M[\d.]+ ([\d.]+)h", paths[5])
    lightest = re.findall(r"M[\d.]+ ([\d.]+)h", paths[0])
    assert min(map(float, darkest)) > max(map(float, lightest))


def test_no_name_of_a_job_becomes_markup(tmp_path, read):
    source = Path(read("jobs/ddp_host/faulty")[1].job.profiles[0].path).parent
    for place, file in enumerate(sorted(source.glob("*.gz"))):
        text = gzip.decompress(file.read_bytes())
        text = text.replace(b"augment", b"<img src=x onerror=alert(1)>\\u001b[31m")
        (tmp_path / f"<b>rank{place}.json.gz").write_bytes(gzip.compress(text))
    page = job_report_of(answer_in(tmp_path), "<i>" + str(tmp_path), title="<u>")
    assert not {"img", "b", "i", "u", "script"} & {tag for tag, _, _ in page.elements}
    assert "\x1b" not in page.source
    assert "onerror=alert(1)" in page.text
