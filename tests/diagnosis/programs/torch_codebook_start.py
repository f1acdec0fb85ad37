"""A vector-quantised autoencoder whose codebook starts from k-means over encoded data."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="k-means at the start compares all vectors with all codes at once, by broadcasting",
    about="memory",
    kind="peak_outside_steps|huge_temporary|peak_in_one_step",
    culprit=r"kmeans|init_codebook|nearest_code",
    line=r"kmeans|init_codebook|nearest_code",
    savings="temporary|recompute|batch|precision",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(8)

    def nearest_code(vectors, codes):
        return (vectors[:, None, :] - codes[None, :, :]).square().sum(dim=2).argmin(dim=1)

    @torch.no_grad()
    def kmeans(vectors, count, rounds=2):
        codes = vectors[torch.randperm(len(vectors))[:count]]
        for _ in range(rounds):
            if faulty:
                owner = nearest_code(vectors, codes)
            else:
                owner = torch.cat([nearest_code(part, codes) for part in vectors.split(64)])
            sums = torch.zeros_like(codes).index_add_(0, owner, vectors)
            codes = sums / torch.bincount(owner, minlength=count).clamp(min=1)[:, None]
        return codes

    class VQAutoEncoder(nn.Module):
        def __init__(self, codes=128, width=32):
            super().__init__()
            self.encode = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, width))
            self.decode = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 128))
            self.codebook = nn.Parameter(torch.randn(codes, width))

        @torch.no_grad()
        def init_codebook(self, data):
            self.codebook.copy_(kmeans(self.encode(data), len(self.codebook)))

        def forward(self, x):
            z = self.encode(x)
            quantised = self.codebook[torch.cdist(z, self.codebook).argmin(dim=1)]
            straight = z + (quantised - z).detach()
            return self.decode(straight), (quantised - z.detach()).square().mean()

    data = torch.randn(2048, 128)
    with MemorySnapshot(annotations=True, stacks="all") as gpu:
        gpu.record_memory_history()
        model = VQAutoEncoder().cuda()
        model.init_codebook(data.cuda())
        start = gpu.peak
        gpu.reset_peak()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for batch in data.split(256):
            inputs = batch.cuda()
            output, commitment = model(inputs)
            loss = nn.functional.mse_loss(output, inputs) + 0.25 * commitment
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        gpu.dump(folder / "snapshot.pickle")
    return {"peak_bytes": max(start, gpu.peak), "peak_of_steps": gpu.peak, "steps": 8}
