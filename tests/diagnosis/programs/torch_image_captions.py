"""An image captioning decoder on features of a pretrained CNN, with teacher forcing."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the decoder runs an LSTMCell and the output layer word by word in a Python loop",
    about="time",
    kind="tiny_ops|launch_bound|host_bound|python_work",
    culprit=r"lstm_cell|aten::(_?thnn_fused_lstm_cell|sigmoid_?|tanh_?|unsafe_chunk)",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(21)
    torch.set_num_threads(1)
    vocab_size, embed_size, hidden_size, max_len = 400, 64, 64, 11

    class DecoderRNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocab_size, embed_size)
            self.init_h = nn.Linear(256, hidden_size)
            self.init_c = nn.Linear(256, hidden_size)
            if faulty:
                self.lstm = nn.LSTMCell(embed_size, hidden_size)
            else:
                self.lstm = nn.LSTM(embed_size, hidden_size, batch_first=True)
            self.fc = nn.Linear(hidden_size, vocab_size)

        def forward(self, features, captions):
            words = self.embed(captions)
            h, c = self.init_h(features), self.init_c(features)
            if not faulty:
                states, _ = self.lstm(words, (h.unsqueeze(0), c.unsqueeze(0)))
                return self.fc(states)
            outputs = []
            for t in range(captions.size(1)):
                h, c = self.lstm(words[:, t], (h, c))
                outputs.append(self.fc(h))
            return torch.stack(outputs, dim=1)

    decoder = DecoderRNN()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(decoder.parameters(), lr=4e-4)
    features = torch.randn(8, 256)
    captions = torch.randint(vocab_size, (8, max_len + 1))

    def train(features, captions):
        decoder.zero_grad()
        outputs = decoder(features, captions[:, :-1])
        loss = criterion(outputs.reshape(-1, vocab_size), captions[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()

    seconds = []
    for _ in range(30):
        begin = time.perf_counter()
        train(features, captions)
        seconds.append(time.perf_counter() - begin)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda p: write_trace(p, folder, "captions"),
    ) as prof:
        for _ in range(6):
            train(features, captions)
            prof.step()
    return {"step_seconds": median(seconds[5:]), "words": max_len, "steps": 3}
