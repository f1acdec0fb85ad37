"""Semi-supervised training with a mean teacher that follows the student's weights."""

import copy
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the student's whole state_dict is deep-copied in every step to move the teacher",
    about="time",
    kind="time_in_copies|python_work|expensive_op|redundant_copy|churn|host_bound|tiny_ops",
    culprit=r"deepcopy|update_teacher|aten::(copy_|clone)",
    line=r"deepcopy|update_teacher",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    torch.manual_seed(14)
    torch.set_num_threads(1)

    def make_model():
        return nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 100))

    student, teacher = make_model(), make_model()
    teacher.load_state_dict(student.state_dict())
    teacher.requires_grad_(requires_grad=False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05)

    def update_teacher(alpha=0.99):
        if faulty:
            new = copy.deepcopy(student.state_dict())
            old = copy.deepcopy(teacher.state_dict())
            for name in new:
                new[name] = alpha * old[name] + (1 - alpha) * new[name]
            teacher.load_state_dict(new)
        else:
            with torch.no_grad():
                torch._foreach_lerp_(
                    list(teacher.parameters()), list(student.parameters()), 1 - alpha
                )

    labelled, classes = torch.randn(8, 512), torch.randint(100, (8,))
    unlabelled = torch.randn(16, 512)

    def train_one_batch():
        with record_function("supervised"):
            loss = nn.functional.cross_entropy(student(labelled), classes)
        with record_function("consistency"):
            with torch.no_grad():
                target = teacher(unlabelled).softmax(dim=1)
            loss = loss + nn.functional.mse_loss(student(unlabelled).softmax(dim=1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_teacher()

    times = []
    for _ in range(24):
        start = time.perf_counter()
        train_one_batch()
        times.append(time.perf_counter() - start)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "student"),
        with_stack=True,
    ) as prof:
        for _ in range(8):
            train_one_batch()
            prof.step()
    return {"step_seconds": median(times[4:]), "steps": 3}
