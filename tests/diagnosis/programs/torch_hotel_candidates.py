"""Ranks 200 hotels for each guest, from what the guest booked before."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

GUESTS, HOTELS, GUEST_WIDTH, HOTEL_WIDTH = 32, 200, 256, 64

PAIR = Pair(
    fault="each guest's vector is repeated for 200 hotels and joined to theirs before a layer",
    about="memory",
    kind="huge_temporary|held_after_use|accumulated_in_step",
    culprit=r"aten::(repeat|cat)(?!\w)|(Repeat|Cat)Backward",
    savings="temporary|recompute|batch|precision",
    faulty_allowed=(r"(expensive_op|time_in_copies).*(repeat|cat|copy_|mm)\b",),
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(63)
    torch.set_num_threads(1)

    class Ranker(nn.Module):
        def __init__(self, hotels=2000, hidden=64):
            super().__init__()
            self.hotels = nn.Embedding(hotels, HOTEL_WIDTH)
            self.history = nn.EmbeddingBag(hotels, GUEST_WIDTH)
            if faulty:
                self.hidden = nn.Linear(GUEST_WIDTH + HOTEL_WIDTH, hidden)
            else:
                self.of_guest = nn.Linear(GUEST_WIDTH, hidden)
                self.of_hotel = nn.Linear(HOTEL_WIDTH, hidden, bias=False)
            self.out = nn.Linear(hidden, 1)

        def forward(self, booked, candidates):
            guest = self.history(booked)
            hotels = self.hotels(candidates)
            if faulty:
                guest = guest.unsqueeze(1).repeat(1, hotels.shape[1], 1)
                x = self.hidden(torch.cat([guest, hotels], dim=2))
            else:
                x = self.of_guest(guest).unsqueeze(1) + self.of_hotel(hotels)
            return self.out(torch.relu(x)).squeeze(2)

    model = Ranker()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def train(steps, prof=None):
        times = []
        for _ in range(steps):
            booked = torch.randint(2000, (GUESTS, 20))
            candidates = torch.randint(2000, (GUESTS, HOTELS))
            chosen = torch.randint(HOTELS, (GUESTS,))
            began = time.perf_counter()
            loss = nn.functional.cross_entropy(model(booked, candidates), chosen)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = train(10)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=6, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "hotels"),
        record_shapes=True,
        profile_memory=True,
    ) as prof:
        train(8, prof)
    repeated = GUESTS * HOTELS * GUEST_WIDTH * 4 if faulty else 0
    joined = GUESTS * HOTELS * (GUEST_WIDTH + HOTEL_WIDTH) * 4 if faulty else 0
    return {"step_seconds": seconds, "repeated_bytes": repeated, "joined_bytes": joined, "steps": 6}
