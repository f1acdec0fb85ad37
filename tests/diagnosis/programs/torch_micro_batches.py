"""A small GPT trained with gradient accumulation over four micro-batches."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="losses of the micro-batches are summed and backwarded once, so all their logits live on",
    about="memory",
    kind="accumulated_in_step|huge_temporary",
    culprit=r"cross_entropy|log_softmax|lm_loss|linear\.py|functional\.py",
    line=r"lm_loss|cross_entropy|linear\.py|train\.py",
    savings="recompute|batch|precision|older_copy",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(4)
    vocab, context, width = 2000, 64, 64

    class CausalBlock(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln = nn.LayerNorm(width)
            self.attn = nn.Linear(width, 3 * width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            q, k, v = self.attn(self.ln(x)).chunk(3, dim=-1)
            x = x + functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.mlp(x)

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
            self.h = nn.ModuleList(CausalBlock() for _ in range(2))
            self.lm_head = nn.Linear(width, vocab, bias=False)

        def forward(self, idx):
            x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
            for block in self.h:
                x = block(x)
            return self.lm_head(x)

    def lm_loss(model, tokens):
        logits = model(tokens[:, :-1])
        return functional.cross_entropy(logits.reshape(-1, vocab), tokens[:, 1:].reshape(-1))

    corpus = torch.randint(vocab, (6, 4, 8, context + 1))
    with MemorySnapshot() as gpu:
        model = GPT().cuda()
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        for step, micro_batches in enumerate(corpus):
            if step == 2:
                gpu.record_memory_history()
            if faulty:
                loss = sum(lm_loss(model, tokens.cuda()) for tokens in micro_batches)
                (loss / len(micro_batches)).backward()
                del loss
            else:
                for tokens in micro_batches:
                    (lm_loss(model, tokens.cuda()) / len(micro_batches)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        gpu.dump(folder / "snapshot.pickle")
    logits = 8 * context * vocab * 4
    return {"logits_bytes": logits, "peak_bytes": gpu.peak, "steps": 4}
