"""The work of our programs as a PyTorch user would write it: training steps of a GPT on synthetic tokens, one CPU thread a rank.

    python3 torch_peer.py MODE [--layers N ...] [--bf16]      MODE: single, checkpoint, ddp, fsdp, tp,
                                                            gpipe, 1f1b, interleaved, zero-bubble

Prints one line of JSON: the seconds of each timed step (the slowest rank's), the last loss, the number of the printing rank's parameters.
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
from torch.utils.checkpoint import checkpoint


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


class Embedding(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.wte = nn.Embedding(a.vocab, a.hidden)
        self.wpe = nn.Parameter(0.02 * torch.randn(a.seq, a.hidden))

    def forward(self, tokens):
        return self.wte(tokens) + self.wpe


class Head(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.ln_f = nn.LayerNorm(a.hidden)
        self.head = nn.Linear(a.hidden, a.vocab, bias=False)

    def forward(self, x):
        return self.head(self.ln_f(x))


def gpt(a):
    """The blocks of the model, in order."""
    return [Embedding(a), *(Block(a.hidden, a.heads) for _ in range(a.layers)), Head(a)]


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


class Whole:
    """All of the model's work in one chain."""

    def set_samples(self, a, rows, seed):
        torch.manual_seed(seed)
        self.tokens, self.targets = torch.randint(0, a.vocab, (2, rows, a.seq))

    def forward_backward(self):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.a.bf16):
            logits = self.model(self.tokens)
        loss = loss_of(logits, self.targets)
        loss.backward()
        return loss.item()


class Replicas(Whole):
    """One model on every rank, each with its part of the batch."""

    def __init__(self, a, rank, ranks):
        self.a = a
        self.model = nn.Sequential(*gpt(a))
        if ranks > 1:
            self.model = nn.parallel.DistributedDataParallel(self.model)
        self.set_samples(a, a.batch // ranks, 2 + rank)


class BlocksRunAgain(nn.Sequential):
    """Every transformer block keeps its input alone."""

    def forward(self, x):
        for module in self:
            x = checkpoint(module, x, use_reentrant=False) if isinstance(module, Block) else module(x)
        return x


class Recomputing(Whole):
    def __init__(self, a, rank, ranks):
        self.a = a
        self.model = BlocksRunAgain(*gpt(a))
        self.set_samples(a, a.batch, 2)


class Sharded(Whole):
    """Replicas whose parameters, gradients and optimizer state are sharded by block."""

    def __init__(self, a, rank, ranks):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        self.a = a
        self.model = nn.Sequential(*gpt(a))
        mesh = init_device_mesh("cpu", (ranks,))
        for block in self.model:
            fully_shard(block, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.set_samples(a, a.batch // ranks, 2 + rank)


class Sliced(Whole):
    """The matrices of each block split over the ranks, as in Megatron; all ranks see the whole batch."""

    def __init__(self, a, rank, ranks):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        self.a = a
        self.model = nn.Sequential(*gpt(a))
        mesh = init_device_mesh("cpu", (ranks,))
        for block in self.model[1:-1]:
            columns = {name: ColwiseParallel() for name in ("q", "k", "v", "fc")}
            parallelize_module(block, mesh, {**columns, "proj": RowwiseParallel(), "fc_proj": RowwiseParallel()})
            block.heads //= ranks
        parallelize_module(self.model[-1], mesh, {"head": ColwiseParallel(output_layouts=Replicate())})
        self.set_samples(a, a.batch, 2)


def cut(costs, pieces):
    """Where the pieces of a chain begin, by equal cost."""
    bounds = [0]
    for piece in range(1, pieces):
        target = sum(costs) * piece / pieces
        bounds.append(min(range(bounds[-1] + 1, len(costs)), key=lambda i: abs(sum(costs[:i]) - target)))
    return bounds + [len(costs)]


class Stages:
    """A piece of the model on every rank (interleaved: two), under one of PyTorch's schedules; eight micro-batches."""

    SCHEDULES = {
        "gpipe": ("ScheduleGPipe", 1),
        "1f1b": ("Schedule1F1B", 1),
        "interleaved": ("ScheduleInterleaved1F1B", 2),
        "zero-bubble": ("ScheduleInterleavedZeroBubble", 2),
    }

    def __init__(self, a, rank, ranks):
        from torch.distributed import pipelining

        self.a = a
        name, chunks = self.SCHEDULES[a.mode]
        blocks = gpt(a)
        bounds = cut([0.05, *[12 * a.hidden + 2 * a.seq] * a.layers, a.vocab], ranks * chunks)
        mine = [rank + ranks * chunk for chunk in range(chunks)]
        pieces = [nn.Sequential(*blocks[bounds[i] : bounds[i + 1]]) for i in mine]
        stages = [pipelining.PipelineStage(piece, i, ranks * chunks, torch.device("cpu")) for piece, i in zip(pieces, mine)]
        self.schedule = getattr(pipelining, name)(stages[0] if chunks == 1 else stages, 8, loss_fn=loss_of)
        self.model = nn.ModuleList(pieces)
        self.first, self.last = 0 in mine, ranks * chunks - 1 in mine
        torch.manual_seed(2)
        self.tokens, self.targets = torch.randint(0, a.vocab, (2, a.batch, a.seq))

    def forward_backward(self):
        losses = []
        inputs = [self.tokens] if self.first else []
        outputs = {"target": self.targets, "losses": losses} if self.last else {}
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.a.bf16):
            self.schedule.step(*inputs, **outputs)
        return sum(loss.item() for loss in losses) / max(1, len(losses))


# What a mode runs, and on how many ranks. Batches are the whole job's.
MODES = {"single": (Replicas, 1), "checkpoint": (Recomputing, 1), "ddp": (Replicas, 2), "fsdp": (Sharded, 2), "tp": (Sliced, 2), **{mode: (Stages, 2) for mode in Stages.SCHEDULES}}


def bind(rank):
    """Each rank on a core of its own."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[rank % len(allowed)]})


def adamw(model):
    """The fused one takes tensors of one kind in a call: distributed ones and others are groups of their own."""
    groups = {}
    for parameter in model.parameters():
        groups.setdefault(type(parameter.data), []).append(parameter)
    return torch.optim.AdamW([{"params": group} for group in groups.values()], lr=3e-4, weight_decay=0, fused=True)


def train(rank, a, ranks, port):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    bind(rank)
    if ranks > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    work = MODES[a.mode][0](a, rank, ranks)
    parameters = sum(p.numel() for p in work.model.parameters())
    optimizer = adamw(work.model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = work.forward_backward()
        optimizer.step()
        return loss

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
    if rank == ranks - 1:
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        print(json.dumps({"step_seconds": seconds, "loss": loss, "parameters": parameters, "ranks": ranks, "versions": versions}), flush=True)
    if ranks > 1:
        os._exit(0)  # gloo's threads may outlive the interpreter, whose end they then turn into an abort


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
