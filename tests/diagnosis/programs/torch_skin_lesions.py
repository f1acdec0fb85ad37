"""A classifier of skin lesions, which logs a class activation map of every batch."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the hook of each map is never removed, so each step leaves one more copy of activations",
    about="memory",
    kind="leak",
    culprit=r"save_activation|GradCAM",
    line=r"save_activation",
    magnitude=8 * 48 * 32 * 32 * 4,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(31)

    class GradCAM:
        """Weights the activations of a layer by their mean gradient."""

        def __init__(self, layer):
            self.activations = None
            self.handle = layer.register_forward_hook(self.save_activation)

        def save_activation(self, _module, _args, output):
            self.activations = output.detach().clone()

        def heatmap(self, weight):
            return torch.einsum("c,bchw->bhw", weight, self.activations).relu()

        def close(self):
            if not faulty:
                self.handle.remove()

    class LesionNet(nn.Module):
        def __init__(self, classes=7):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(),
                nn.Conv2d(24, 48, 3, stride=2, padding=1), nn.BatchNorm2d(48),
            )  # fmt: skip
            self.classifier = nn.Linear(48, classes)

        def forward(self, x):
            return self.classifier(torch.relu(self.features(x)).mean(dim=(2, 3)))

    def train_one_epoch(model, loader, optimizer, images_logged):
        for images, lesions in loader:
            cam = GradCAM(model.features[-1])
            loss = nn.functional.cross_entropy(model(images.to("cuda")), lesions.to("cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                heat = cam.heatmap(model.classifier.weight.mean(dim=0))
            images_logged.append(heat[0].mean().item())
            cam.close()

    def batches(count):
        for _ in range(count):
            yield torch.randn(8, 3, 64, 64), torch.randint(7, (8,))

    with MemorySnapshot(stacks="all") as gpu:
        gpu.record_memory_history()
        model = LesionNet().to("cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        train_one_epoch(model, batches(12), optimizer, [])
        gpu.dump(folder / "snapshot.pickle")
    return {"peak_bytes": gpu.peak, "copy_bytes": 8 * 48 * 32 * 32 * 4, "steps": 12}
