"""Kinds of coins by a small net, which learns from the logits of a large one."""

from pathlib import Path

from tests.diagnosis.pair import Pair

BATCH, COINS = 24, 30

PAIR = Pair(
    fault="the teacher's forward records a graph, so all its feature maps live until backward",
    about="memory",
    kind="huge_temporary|accumulated_in_step|held_after_use|one_pass",
    culprit=r"teacher_logits|Teacher|train\.py:40\b",
    line=r"teacher_logits|Teacher|train\.py:40\b",
    savings="temporary|recompute|older_copy|precision|batch",
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(77)
    torch.set_num_threads(1)

    def conv(channels_in, channels, stride=1):
        return [nn.Conv2d(channels_in, channels, 3, stride, 1), nn.BatchNorm2d(channels), nn.GELU()]

    class Teacher(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                *conv(3, 32, 2), *conv(32, 32), *conv(32, 32), *conv(32, 32), *conv(32, 32)
            )
            self.out = nn.Linear(32, COINS)

        def forward(self, images):
            return self.out(self.layers(images).mean(dim=(2, 3)))

    class Student(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(*conv(3, 24, 2), *conv(24, 32), *conv(32, 32, 2))
            self.out = nn.Linear(32, COINS)

        def forward(self, images):
            return self.out(self.layers(images).mean(dim=(2, 3)))

    def teacher_logits(teacher, images):
        with torch.set_grad_enabled(faulty):
            return teacher(images)

    def train_step(student, teacher, optimizer, images):
        wanted = teacher_logits(teacher, images).softmax(dim=1)
        loss = nn.functional.cross_entropy(student(images), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    loader = [torch.randn(BATCH, 3, 64, 64) for _ in range(6)]
    in_use = []
    with MemorySnapshot() as gpu:
        gpu.record_memory_history()
        teacher, student = Teacher().to("cuda").eval(), Student().to("cuda")
        optimizer = torch.optim.Adam(student.parameters(), lr=0.001)
        for images in loader:
            train_step(student, teacher, optimizer, images.to("cuda"))
            in_use.append(gpu.in_use)
        gpu.dump(folder / "coins.pickle")
    return {"peak_bytes": gpu.peak, "in_use_after_steps": in_use, "steps": 6}
