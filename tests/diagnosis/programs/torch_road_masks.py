"""Segmentation of road scenes, with the mean IoU of each training batch on the progress bar."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

BATCH, CLASSES, SIZE = 4, 19, 128

PAIR = Pair(
    fault="the IoU of each training batch comes from one-hot vectors of int64 for all pixels",
    about="memory",
    kind="huge_temporary",
    culprit=r"one_hot|mean_iou|aten::(zeros|scatter_?|bitwise_(and|or)|__(and|or)__)(?!\w)",
    line=r"mean_iou|one_hot",
    savings="temporary|precision",
    # The same tensors are made and read in the step's time too.
    faulty_allowed=(
        r"(expensive_op|unfused_elementwise|churn).*(one_hot|scatter|bitwise|sum|fill_|mean_iou)",
    ),
    round=4,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(44)
    torch.set_num_threads(1)

    @torch.no_grad()
    def mean_iou(logits, masks):
        result = logits.argmax(dim=1)
        if faulty:
            result = functional.one_hot(result, CLASSES)
            right = functional.one_hot(masks, CLASSES)
            overlap = (result & right).sum(dim=(0, 1, 2))
            union = (result | right).sum(dim=(0, 1, 2))
        else:
            pairs = (masks * CLASSES + result).flatten().bincount(minlength=CLASSES**2)
            confusion = pairs.view(CLASSES, CLASSES)
            overlap = confusion.diagonal()
            union = confusion.sum(dim=0) + confusion.sum(dim=1) - overlap
        return (overlap / union.clamp(min=1)).mean().item()

    class SegmentationHead(nn.Module):
        """Features of an eighth of the size, turned into classes, and these made as large."""

        def __init__(self, width=96):
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Conv2d(3, width, 5, stride=4, padding=2), nn.ReLU(),
                nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
                nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(),
            )  # fmt: skip
            self.classes = nn.Conv2d(2 * width, CLASSES, 1)

        def forward(self, images):
            coarse = self.classes(self.encoder(images))
            return functional.interpolate(coarse, scale_factor=8, mode="bilinear")

    model = SegmentationHead()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-5)
    shown = {}

    def train_one_epoch(loader, prof=None):
        times = []
        for images, masks in loader:
            began = time.perf_counter()
            logits = model(images)
            loss = functional.cross_entropy(logits, masks)
            shown["iou"] = mean_iou(logits, masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            del logits, loss
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    def load(batches):
        for _ in range(batches):
            images = torch.randn(BATCH, 3, SIZE, SIZE)
            yield images, torch.randint(CLASSES, (BATCH, SIZE, SIZE))

    seconds = train_one_epoch(load(6))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "roads"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as prof:
        train_one_epoch(load(6), prof)
    pixels = BATCH * SIZE * SIZE
    vectors = 3 * pixels * CLASSES * 8 if faulty else 0
    return {"step_seconds": seconds, "one_hot_bytes": vectors, "steps": 3}
