"""A session recommender with one small state tensor for each user."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each user's state is a tensor of its own of 516 bytes, which takes a block of 1,024",
    about="memory",
    kind="rounding",
    culprit=r"\b516\b|UserStates|reset_states|dictcomp",
    line=r"reset_states|dictcomp",
    savings="rounding|duplicate|offload|precision",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(7)
    users, width = 5000, 129

    class UserStates:
        """The last hidden state of every user, and a count."""

        def __init__(self):
            self.reset_states()

        def reset_states(self):
            if faulty:
                self.states = {u: torch.zeros(width, device="cuda") for u in range(users)}
            else:
                self.states = torch.zeros(users, width, device="cuda")

        def fetch(self, who):
            if faulty:
                return torch.stack([self.states[u] for u in who.tolist()])
            return self.states[who]

        def store(self, who, states):
            if faulty:
                for row, user in enumerate(who.tolist()):
                    self.states[user].copy_(states[row])
            else:
                self.states[who] = states

    class SessionModel(nn.Module):
        def __init__(self, items=300):
            super().__init__()
            self.items = nn.Embedding(items, width)
            self.mix = nn.Bilinear(8, width, 8)
            self.gate = nn.Conv1d(1, 1, 3, padding=1)
            self.bias = nn.Parameter(torch.zeros(items))

        def forward(self, clicked, state):
            update = self.gate((self.items(clicked) * torch.sigmoid(state)).unsqueeze(1)).squeeze(1)
            return state + update

    clicks = torch.randint(300, (8, 32))
    with MemorySnapshot() as gpu:
        gpu.record_memory_history()
        model = SessionModel().to("cuda")
        states = UserStates()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for clicked in clicks:
            who = torch.randint(users, (32,))
            new = model(clicked.to("cuda"), states.fetch(who))
            loss = new.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            states.store(who, new.detach())
            del loss, new
        gpu.dump(folder / "snapshot.pickle")
    return {"peak_bytes": gpu.peak, "state_bytes": users * width * 4, "steps": 8}
