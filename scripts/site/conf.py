"""How Sphinx makes a site of ``docs/``: ``make site`` writes build/site, which opens from a disk.

The pages are plain Markdown, which every viewer of the repository shows; what only the site has is
here. Every page must be in the navigation, and every link must lead somewhere: a warning fails the
build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

NAVIGATION = {
    "Tasks": """
        Out of memory <tasks/out-of-memory>
        A step is slow <tasks/slow-step>
        My job runs on many GPUs <tasks/many-gpus>
        It compiles again <tasks/recompiles>
        It waits for input <tasks/input-bound>
        Two runs differ <tasks/compare-two-runs>
        A gate in CI <tasks/gate-in-ci>
        Serve a team <tasks/serve-a-team>
    """,
    "Record": """
        Which file do I have <which-file>
        TensorFlow <record/tensorflow>
        Keras <record/keras>
        JAX <record/jax>
        Flax <record/flax>
        PyTorch <record/pytorch>
        Lightning <record/lightning>
        vLLM <record/vllm>
        Running jobs <capture>
    """,
    "Answers": """
        summary
        memory-profile
        memory-over-time
        live-memory
        fit
        programs
        oom-reports
        memory-logs
        steps
        ops
        critical-path
        job
        collectives
        input-pipeline
        trace
        timeline
        findings
        time-findings
        diff
        report
        notebook
        view
        page
    """,
    "Reference": """
        install
        cli
        terminal
        warnings
        api
        interfaces
        figures
        sql
        tables
        views
        formats
        tools
        differences
        export
        trace-viewer
        op-stats
        graph-check
        check
        pytest
        serve
        service-grpc
        service-http
        repository
        glossary
    """,
    "How it works": """
        how-it-works
        architecture
        decoding
        kernels
        engine
        testing
    """,
}
"""The pages by the heading under which the site lists them, in order."""

project = "Peakline"
extensions = ["myst_parser", "sphinx_copybutton"]
myst_heading_anchors = 4
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]  # a block of `hex`, which a test reads
copybutton_selector = "div.highlight-sh pre, div.highlight-python pre, div.highlight-sql pre"
html_theme = "furo"
html_title = "Peakline"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

_LINK_OUT = re.compile(r"(\(?)\[([^\]]+)\]\(((?:\.\./)+)([^)#]+)[^)]*\)")
_LINK_BY_FILE = re.compile(r"\[([\w-]+\.md)\]\((?=[\w./-]*\1[)#])")


def _prepare(app: Any, name: str, source: list[str]) -> None:
    """Make Sphinx's Markdown of a page's."""
    app.env.note_dependency(__file__)
    depth = name.count("/") + 1

    def plain(match: re.Match[str]) -> str:
        # What a link out of docs/ leads to is in the repository, not on the site.
        before, text, up, path = match.groups()
        if up.count("/") < depth:
            return match[0]
        if path in text:
            return before + text
        return f"{before}{text}: `{path}`" if before else f"{text} (`{path}`)"

    # The site has titles for names of files.
    source[0] = _LINK_BY_FILE.sub("[](", _LINK_OUT.sub(plain, source[0]))
    if name == "index":
        source[0] += "".join(map(_listed, NAVIGATION.items()))
    if name == "differences":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\ndifferences/*\n```\n"


def _listed(heading: tuple[str, str]) -> str:
    title, pages = heading
    lines = "\n".join(line.strip() for line in pages.strip().splitlines())
    return f"\n```{{toctree}}\n:caption: {title}\n:hidden:\n\n{lines}\n```\n"


def setup(app: Any) -> None:
    """Connect to Sphinx."""
    app.connect("source-read", _prepare)
