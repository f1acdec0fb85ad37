"""Sentiment of product reviews, each batch padded to its longest, in a trainer of one class."""

from pathlib import Path

from tests.diagnosis.pair import Pair

LIMIT = 96

PAIR = Pair(
    fault="reviews are not cut at a length: one of 900 words pads its whole batch, in one step",
    about="memory",
    kind="peak_in_one_step",
    culprit=r"step [789]\b|collate|pad_sequence|\bforward\b|\bglu\b|ReviewNet",
    line=r"forward|train_step|collate|functional|conv",
    magnitude=88_164_352,
    round=4,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pad_sequence

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(45)
    torch.set_num_threads(1)

    class ReviewNet(nn.Module):
        """Convolutions over words, with gates, and the mean of all positions."""

        def __init__(self, words=800, width=96):
            super().__init__()
            self.embed = nn.Embedding(words, width, padding_idx=0)
            self.convs = nn.ModuleList(nn.Conv1d(width, 2 * width, 5, padding=2) for _ in range(3))
            self.out = nn.Linear(width, 2)

        def forward(self, words):
            x = self.embed(words).transpose(1, 2)
            for conv in self.convs:
                x = x + nn.functional.glu(conv(x), dim=1)
            return self.out(x.mean(dim=2))

    def collate(reviews, stars):
        words = [torch.tensor(review[:LIMIT] if not faulty else review) for review in reviews]
        return pad_sequence(words, batch_first=True), torch.tensor(stars)

    class Trainer:
        def __init__(self, model):
            self.model = model
            self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
            self.peaks = []

        def train_step(self, words, stars):
            logits = self.model(words.to("cuda"))
            loss = nn.functional.cross_entropy(logits, stars.to("cuda"))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

        def train(self, loader, gpu):
            for words, stars in loader:
                gpu.reset_peak()
                self.train_step(words, stars)
                self.peaks.append(gpu.peak)

    def reviews(batches, batch_size=16):
        for index in range(batches):
            lengths = torch.randint(40, LIMIT, (batch_size,)).tolist()
            lengths[3] = 900 if index == 8 else LIMIT
            texts = [torch.randint(1, 800, (length,)).tolist() for length in lengths]
            yield collate(texts, torch.randint(2, (batch_size,)).tolist())

    with MemorySnapshot() as gpu:
        gpu.record_memory_history()
        trainer = Trainer(ReviewNet().to("cuda"))
        trainer.train(reviews(14), gpu)
        gpu.dump(folder / "snapshot.pickle")
    peaks = trainer.peaks
    others = max(peaks[:8] + peaks[9:])
    return {"peak_bytes": max(peaks), "others_bytes": others, "peak_step": 8, "steps": 14}
