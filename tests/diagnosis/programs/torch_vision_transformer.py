"""A vision transformer in the manner of a tutorial, trained on patches of images."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="attention is written out, so whole matrices of scores are made and saved in each layer",
    about="memory",
    kind="huge_temporary|accumulated_in_step",
    culprit=r"softmax|scaled_dot_product|MultiheadAttention",
    line=r"scaled_dot_product|softmax|train\.py",
    savings="recompute|temporary|precision|batch",
    is_held_out=False,
    # Every layer saves them for the backward pass.
    faulty_allowed=(r"one_pass.*(softmax|scaled_dot_product|forward)",),
)


def record(folder: Path, *, faulty: bool) -> dict:
    import math

    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(3)

    def scaled_dot_product(q, k, v):
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        attention = F.softmax(scores, dim=-1)
        return torch.matmul(attention, v)

    class MultiheadAttention(nn.Module):
        def __init__(self, embed_dim, num_heads):
            super().__init__()
            self.num_heads = num_heads
            self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
            self.o_proj = nn.Linear(embed_dim, embed_dim)

        def forward(self, x):
            batch, length, dim = x.size()
            qkv = self.qkv_proj(x).reshape(batch, length, self.num_heads, -1).permute(0, 2, 1, 3)
            q, k, v = qkv.chunk(3, dim=-1)
            mix = scaled_dot_product if faulty else F.scaled_dot_product_attention
            return self.o_proj(mix(q, k, v).permute(0, 2, 1, 3).reshape(batch, length, dim))

    class EncoderBlock(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.self_attn = MultiheadAttention(dim, 4)
            self.linear_net = nn.Sequential(
                nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)
            )

        def forward(self, x):
            x = x + self.self_attn(self.norm1(x))
            return x + self.linear_net(self.norm2(x))

    class VisionTransformer(nn.Module):
        def __init__(self, dim=64, depth=3):
            super().__init__()
            self.patches = nn.Conv2d(3, dim, 4, stride=4)
            self.blocks = nn.Sequential(*[EncoderBlock(dim) for _ in range(depth)])
            self.mlp_head = nn.Linear(dim, 10)

        def forward(self, images):
            tokens = self.patches(images).flatten(2).transpose(1, 2)
            return self.mlp_head(self.blocks(tokens).mean(dim=1))

    images, labels = torch.rand(4, 3, 96, 96), torch.randint(10, (4,))
    with MemorySnapshot(stacks="all") as gpu:
        gpu.record_memory_history()
        model = VisionTransformer().to("cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        for _epoch in range(5):
            batch = images.to("cuda"), labels.to("cuda")
            preds = model(batch[0])
            loss = F.cross_entropy(preds, batch[1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        gpu.dump(folder / "snapshot.pickle")
    matrix = 4 * 4 * 576 * 576 * 4 if faulty else 0
    return {"matrix_bytes": matrix, "peak_bytes": gpu.peak, "steps": 5}
