"""Predict whether students answer right, with attention over what they answered before."""

from pathlib import Path

from tests.diagnosis.pair import Pair

WIDTH, SKILLS = 512, 400

PAIR = Pair(
    fault="Adagrad runs in its foreach form, whose temporaries are two more copies of all weights",
    about="memory",
    kind="huge_temporary|redundant_copy|optimizer_state|accumulated_in_step",
    culprit=r"_multi_tensor_adagrad|adagrad\.py:5\d\d|_foreach|callee\W+(step|wrapper|adagrad)",
    line=r"adagrad|train_interactions",
    savings="temporary|duplicate|fuse|pieces",
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(23)

    class SAKT(nn.Module):
        """Self-attentive knowledge tracing."""

        def __init__(self, heads=8, length=50):
            super().__init__()
            self.interactions = nn.Embedding(2 * SKILLS, WIDTH)
            self.exercises = nn.Embedding(SKILLS, WIDTH)
            self.positions = nn.Parameter(torch.zeros(length, WIDTH))
            self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.value, self.project = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.feed = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)
            )
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.answer = nn.Linear(WIDTH, 1)
            self.heads = heads

        def split(self, x):
            return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        def forward(self, past, exercise):
            memory = self.interactions(past) + self.positions
            q = self.split(self.query(self.exercises(exercise)))
            k, v = self.split(self.key(memory)), self.split(self.value(memory))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = self.norm1(self.project(mixed.transpose(1, 2).flatten(2)))
            return self.answer(self.norm2(x + self.feed(x))).squeeze(-1)

    def build_optimizer(model):
        options = {"foreach": True} if faulty else {"fused": True}
        return torch.optim.Adagrad(model.parameters(), lr=1e-2, **options)

    def train_interactions(model, optimizer, loader):
        for skills, right in loader:
            past = (skills[:, :-1] + SKILLS * right[:, :-1]).to("cuda")
            goal = right[:, 1:].float().to("cuda")
            score = model(past, skills[:, 1:].to("cuda"))
            loss = nn.functional.binary_cross_entropy_with_logits(score, goal)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            del score, loss
            optimizer.step()

    def load(batches, students=2):
        for _ in range(batches):
            yield torch.randint(SKILLS, (students, 51)), torch.randint(2, (students, 51))

    with MemorySnapshot() as gpu:
        gpu.record_memory_history()
        model = SAKT().to("cuda")
        optimizer = build_optimizer(model)
        train_interactions(model, optimizer, load(1))
        gpu.reset_peak()
        train_interactions(model, optimizer, load(5))
        gpu.dump(folder / "snapshot.pickle")
    weights = sum(p.numel() for p in model.parameters()) * 4
    return {"peak_bytes": gpu.peak, "weight_bytes": weights, "steps": 6}
