"""Text generation with a decoder that has a cache of keys and values for each layer."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the cache grows by torch.cat at each token: a new size each time, beside the old one",
    about="memory",
    kind="fragmentation|held_after_use|huge_temporary|redundant_copy|churn",
    culprit=r"extend_layer",
    line=r"extend_layer",
    savings="fragmentation|temporary|older_copy|duplicate",
    # What one sequence holds grows with each token: true of any cache that grows.
    faulty_allowed=(r"(leak|cache|one_pass).*extend_layer",),
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(32)
    torch.set_num_threads(1)
    batch, prompt, new_tokens, dim, heads, vocab = 32, 16, 112, 128, 4, 500

    class KVCache:
        def __init__(self, layers):
            self.keys, self.values = [None] * layers, [None] * layers
            self.length = [0] * layers

        def extend_layer(self, layer, k, v):
            if faulty:
                if self.keys[layer] is not None:
                    k = torch.cat([self.keys[layer], k], dim=2)
                    v = torch.cat([self.values[layer], v], dim=2)
                self.keys[layer], self.values[layer] = k, v
                return k, v
            if self.keys[layer] is None:
                shape = (batch, heads, prompt + new_tokens, dim // heads)
                self.keys[layer] = torch.empty(shape, device="cuda")
                self.values[layer] = torch.empty(shape, device="cuda")
            begin = self.length[layer]
            end = self.length[layer] = begin + k.shape[2]
            self.keys[layer][:, :, begin:end] = k
            self.values[layer][:, :, begin:end] = v
            return self.keys[layer][:, :, :end], self.values[layer][:, :, :end]

    class Block(nn.Module):
        def __init__(self, index):
            super().__init__()
            self.index = index
            self.ln = nn.LayerNorm(dim)
            self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

        def forward(self, x, cache):
            b, t, _ = x.shape
            qkv = self.qkv(self.ln(x)).view(b, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.contiguous()
            k, v = cache.extend_layer(self.index, k, v)
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
            return x + self.proj(out.transpose(1, 2).reshape(b, t, dim))

    class Decoder(nn.Module):
        def __init__(self, layers=4):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim)
            self.blocks = nn.ModuleList(Block(i) for i in range(layers))

        def forward(self, ids, cache):
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x, cache)
            return x[:, -1] @ self.embed.weight.T

        @torch.inference_mode()
        def generate(self, ids):
            cache = KVCache(len(self.blocks))
            sampled = []
            for _ in range(new_tokens):
                logits = self(ids, cache)
                ids = torch.multinomial(logits.softmax(dim=-1), 1)
                sampled.append(ids.cpu())
            return torch.cat(sampled, dim=1)

    with MemorySnapshot() as gpu:
        model = Decoder().to("cuda").eval()
        gpu.record_memory_history()
        model.generate(torch.randint(vocab, (batch, prompt)).to("cuda"))
        gpu.dump(folder / "snapshot.pickle")
    return {
        "peak_bytes": gpu.peak,
        "peak_reserved_bytes": gpu.peak_reserved,
        "unused_share": 1 - gpu.peak / gpu.peak_reserved,
        "steps": new_tokens,
    }
