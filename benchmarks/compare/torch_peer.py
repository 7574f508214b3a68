"""The work of `serial` and `ddp` as a PyTorch user would write it: training steps of a GPT on synthetic tokens, one CPU thread a rank.

    python3 torch_peer.py MODE [--layers N ...] [--bf16]      MODE: single, ddp

Prints one line of JSON: the seconds of each timed step (the slowest rank's), the last loss, the number of parameters.
"""

import argparse
import json
import os
import platform
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A transformer block of GPT-2: pre-norm, causal attention, GELU in its tanh form."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(hidden)
        self.q = nn.Linear(hidden, hidden)
        self.k = nn.Linear(hidden, hidden)
        self.v = nn.Linear(hidden, hidden)
        self.proj = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, 4 * hidden)
        self.fc_proj = nn.Linear(4 * hidden, hidden)

    def attention(self, x):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.fc_proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.wte = nn.Embedding(a.vocab, a.hidden)
        self.wpe = nn.Parameter(0.02 * torch.randn(a.seq, a.hidden))
        self.blocks = nn.Sequential(*(Block(a.hidden, a.heads) for _ in range(a.layers)))
        self.ln_f = nn.LayerNorm(a.hidden)
        self.head = nn.Linear(a.hidden, a.vocab, bias=False)

    def forward(self, tokens):
        return self.head(self.ln_f(self.blocks(self.wte(tokens) + self.wpe)))


def replicated(model):
    return nn.parallel.DistributedDataParallel(model)


# How a mode wraps the model, and on how many ranks it runs. Batches are the whole job's.
MODES = {"single": (lambda model: model, 1), "ddp": (replicated, 2)}


def bind(rank):
    """Each rank on a core of its own."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[rank % len(allowed)]})


def train(rank, a, ranks, port):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    bind(rank)
    if ranks > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    model = Gpt(a)
    parameters = sum(p.numel() for p in model.parameters())
    model = MODES[a.mode][0](model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0, fused=True)
    torch.manual_seed(2 + rank)
    tokens, targets = torch.randint(0, a.vocab, (2, a.batch // ranks, a.seq))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.bf16):
            logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(a.warmup):
        loss = step()
    seconds = []
    for _ in range(a.steps):
        if ranks > 1:
            dist.barrier()
        begin = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - begin)
    if ranks > 1:
        slowest = torch.tensor(seconds, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        seconds = slowest.tolist()
        dist.destroy_process_group()
    if rank == 0:
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        print(json.dumps({"step_seconds": seconds, "loss": loss, "parameters": parameters, "ranks": ranks, "versions": versions}), flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", choices=MODES)
    for name, default in dict(layers=4, hidden=512, heads=8, seq=256, vocab=8192, batch=4, steps=12, warmup=3).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--bf16", action="store_true", help="autocast to bf16")
    a = parser.parse_args()
    ranks = MODES[a.mode][1]
    if a.batch % ranks != 0:
        parser.error(f"--batch {a.batch} on {ranks} ranks (unequal parts); give a multiple")
    if ranks == 1:
        train(0, a, 1, 0)
    else:
        mp.spawn(train, (a, ranks, free_port()), ranks)


if __name__ == "__main__":
    main()
