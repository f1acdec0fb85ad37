"""The mood of playlists, whose songs have fixed random codes of length one."""

from pathlib import Path

from tests.diagnosis.pair import Pair

SONGS, WIDTH = 80_000, 64

PAIR = Pair(
    fault="the table of codes begins as float64 that is divided and cast, each into a new tensor",
    about="memory",
    kind="peak_outside_steps|huge_temporary|float64_memory",
    culprit=r"unit_codes",
    line=r"unit_codes",
    savings="temporary|precision",
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(54)
    torch.set_num_threads(1)

    def unit_codes(count, width):
        if faulty:
            codes = torch.randn(count, width, dtype=torch.float64, device="cuda")
            codes = codes / codes.norm(dim=1, keepdim=True)
            return codes.float()
        codes = torch.empty(count, width, device="cuda").normal_()
        return functional.normalize(codes, dim=1, out=codes)

    class MoodModel(nn.Module):
        def __init__(self, moods=8):
            super().__init__()
            self.register_buffer("songs", unit_codes(SONGS, WIDTH))
            self.hidden = nn.Linear(WIDTH, 512)
            self.out = nn.Linear(512, moods)

        def forward(self, playlist):
            songs = functional.embedding(playlist, self.songs)
            return self.out(torch.relu(self.hidden(songs)).mean(dim=1))

    def train(model, optimizer, batches):
        for _ in range(batches):
            playlist = torch.randint(SONGS, (64, 20)).to("cuda")
            moods = torch.randint(8, (64,)).to("cuda")
            loss = functional.cross_entropy(model(playlist), moods)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    with MemorySnapshot(stacks="all") as gpu:
        gpu.record_memory_history()
        model = MoodModel().to("cuda")
        peak_of_start = gpu.peak
        gpu.reset_peak()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        train(model, optimizer, 8)
        gpu.dump(folder / "snapshot.pickle")
    return {"peak_bytes_of_start": peak_of_start, "peak_bytes_of_steps": gpu.peak, "steps": 8}
