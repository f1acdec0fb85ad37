"""The profile of a PyTorch program: small, with neutral names."""

import gzip
import re
import sys
import tempfile
from pathlib import Path

import torch


class Network(torch.nn.Module):
    """Two layers, their optimizer, and one training step."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.head = torch.nn.Linear(64, 128), torch.nn.Linear(128, 8)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=1e-3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The output."""
        return self.head(torch.relu(self.hidden(inputs)))

    def train_on(self, inputs: torch.Tensor) -> None:
        """Forward, backward and update."""
        self.optimizer.zero_grad()
        self(inputs).square().mean().backward()
        self.optimizer.step()

    def evaluate_on(self, inputs: torch.Tensor) -> None:
        """Forward alone."""
        with torch.no_grad():
            float(self(inputs).square().mean())


def write(profiler: torch.profiler.profile, output: Path) -> None:
    """Write the trace, with other folders and another host."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        text = path.read_text().replace(folder, "/logdir")
    here = Path(__file__).resolve().parent
    base = Path(sys.base_prefix)
    for place, other in ((sys.prefix, "/opt/environment"), (here, "/src"), (base, "/opt/python")):
        text = text.replace(f"{place}/", f"{other}/")
    text = re.sub(r'("host_name": )"[^"]*"', r'\1"host"', text)
    output.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
