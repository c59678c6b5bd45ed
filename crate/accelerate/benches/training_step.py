"""PyTorch's side of training_step.rs: for each line on stdin, some steps and their times."""

import sys
import time

import torch
import transformers

batch, length, steps = map(int, sys.argv[1:])
config = transformers.DistilBertConfig(
    vocab_size=5000, dim=256, hidden_dim=1024, n_layers=4, n_heads=4, max_position_embeddings=128
)
model = transformers.DistilBertForSequenceClassification(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
ids = (1 + torch.arange(batch * length) * 7919 % 4999).reshape(batch, length)
inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
inputs["labels"] = torch.arange(batch) % 2

for _ in sys.stdin:
    for _ in range(steps):
        start = time.perf_counter()
        outputs = model(**inputs)
        forward = time.perf_counter()
        outputs.loss.backward()
        backward = time.perf_counter()
        optimizer.step()
        optimizer.zero_grad()
        end = time.perf_counter()
        parts = [end - start, forward - start, backward - forward, end - backward]
        print(*(1e3 * part for part in parts), flush=True)
