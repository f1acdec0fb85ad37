"""The examples of docs/notebook.md, run as the cells of a notebook."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.shared import DATA
from tests.waiting import HANG_S


@pytest.mark.nightly
def test_every_example_runs_and_shows(root, tmp_path, monkeypatch):
    # Their import takes seconds, and every worker imports this file.
    import nbclient
    import nbformat

    page = (root / "docs" / "notebook.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    shutil.copytree(DATA / "sessions" / "tf2_cnn", tmp_path / "logs")
    programs = DATA / "programs"
    for name, source in (("before", "leak_list"), ("after", "leak_eager")):
        shutil.copy(programs / f"{source}.xplane.pb.gz", tmp_path / f"{name}.xplane.pb")
    # The kernel is this Python, with this package, wherever the test runs.
    kernel = tmp_path / "kernels" / "here"
    kernel.mkdir(parents=True)
    command = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (kernel / "kernel.json").write_text(f'{{"argv": {command}, "display_name": "here"}}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    paths = [str(Path(path).resolve()) for path in sys.path if path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))

    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(block) for block in blocks]
    )
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, timeout=HANG_S, kernel_name="here", resources=resources
    ).execute()

    shown = [
        output.data
        for cell in notebook.cells
        for output in cell.outputs
        if output.output_type in {"execute_result", "display_data"}
    ]
    assert len(shown) == len(blocks)
    ours = [data for data in shown if 'class="peakline' in data.get("text/html", "")]
    assert "73.0 MiB" in ours[0]["text/html"]
    assert all(len(data["text/plain"]) <= 120 for data in ours)
