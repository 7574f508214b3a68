"""Repeats the cases of golden_export in PyTorch, in fp64, and writes what they came to into data/. See README.md.

    python3 make_golden.py PATH_OF_golden_export
"""

import argparse
import datetime
import hashlib
import json
import math
import pathlib
import platform
import struct
import subprocess
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

DATA = pathlib.Path(__file__).resolve().parent / "data"


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        widths = [c["features"]] + c["layers"] * [c["hidden"]]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in zip(widths, widths[1:]))
        self.out = nn.Linear(widths[-1], c["classes"])

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.out(x)


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(hidden, hidden)
        self.k = nn.Linear(hidden, hidden)
        self.v = nn.Linear(hidden, hidden)
        self.proj = nn.Linear(hidden, hidden)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc = nn.Linear(hidden, 4 * hidden)
        self.proj = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        return self.proj(F.gelu(self.fc(x), approximate="tanh"))


class Layer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hidden, eps=1e-5)
        self.attn = Attention(hidden, heads)
        self.ln_2 = nn.LayerNorm(hidden, eps=1e-5)
        self.mlp = FeedForward(hidden)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """GPT-2 (Radford et al. 2019): pre-LN, learnt positions, no bias in the head."""

    def __init__(self, c):
        super().__init__()
        self.wte = nn.Embedding(c["vocab"], c["hidden"])
        self.wpe = nn.Embedding(c["seq"], c["hidden"])
        self.h = nn.ModuleList(Layer(c["hidden"], c["heads"]) for _ in range(c["layers"]))
        self.ln_f = nn.LayerNorm(c["hidden"], eps=1e-5)
        self.lm_head = nn.Linear(c["hidden"], c["vocab"], bias=False)
        if c["tied"]:
            self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight
        for layer in self.h:
            x = layer(x)
        return self.lm_head(self.ln_f(x))


class ImageBlock(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.conv = nn.Conv2d(channels, hidden, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(hidden)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Convnet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.image = c["image"]
        widths = [c["image"][0]] + c["layers"] * [c["hidden"]]
        self.layers = nn.ModuleList(ImageBlock(i, o) for i, o in zip(widths, widths[1:]))
        self.fc = nn.Linear(c["hidden"], c["classes"])

    def forward(self, x):
        x = x.reshape(-1, *self.image)
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i + 1 < len(self.layers) and min(x.shape[2:]) >= 2:
                x = F.avg_pool2d(x, 2)
        return self.fc(x.mean((2, 3)))


MODELS = {"mlp": Mlp, "gpt": Gpt, "convnet": Convnet}


def channels_last(weight):
    """Filters as the project stores them, [out, height, width, in]."""
    return weight.permute(0, 2, 3, 1).contiguous() if weight.dim() == 4 else weight


def make_model(inputs):
    """The model with the exported weights: every parameter of one is a parameter of the other."""
    config = inputs["model"]
    model = MODELS[config["kind"]](config)
    parameters = dict(model.named_parameters())
    names = [w["name"] for w in inputs["weights"]]
    if sorted(names) != sorted(parameters):
        raise SystemExit(f"{inputs['case']}: parameters differ: {sorted(set(names) ^ set(parameters))}")
    with torch.no_grad():
        for w in inputs["weights"]:
            values = torch.tensor(w["values"]).reshape(w["shape"])
            parameters[w["name"]].copy_(values.permute(0, 3, 1, 2) if values.dim() == 4 else values)
    return model, [(name, parameters[name]) for name in names]


def make_optimizer(rule, settings, parameters):
    """Decay by role: matrices and embeddings decay, biases and gains don't."""
    options = {k: v for k, v in settings.items() if k != "clip_norm"}
    decay = options.pop("weight_decay")
    groups = [
        {"params": [p for _, p in parameters if p.dim() >= 2], "weight_decay": decay},
        {"params": [p for _, p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return (torch.optim.SGD if rule == "sgd" else torch.optim.AdamW)(groups, foreach=False, **options)


def batch_of(inputs, update):
    batch = inputs["updates"][update]
    x, y = torch.tensor(batch["input"]).reshape(batch["rows"], -1), torch.tensor(batch["target"])
    return x, y


def train(inputs, rule):
    """Returns scalars of each update, {"gradient.1": {name: tensor}, "weight.1": ...}, and {"1": {name: values}} of buffers."""
    settings = inputs["settings"][rule]
    model, parameters = make_model(inputs)
    optimizer = make_optimizer(rule, settings, parameters)
    scalars, tensors, buffers = {"loss": [], "norm": [], "counted": []}, {}, {}
    for update in range(1, len(inputs["updates"]) + 1):
        x, y = batch_of(inputs, update - 1)
        counted = int((y >= 0).sum())
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, -2), y, ignore_index=-1, reduction="sum") / counted
        loss.backward()
        gradients = {name: channels_last(p.grad.clone()) for name, p in parameters}
        norm = nn.utils.clip_grad_norm_(model.parameters(), settings["clip_norm"])
        if not norm > settings["clip_norm"]:
            raise SystemExit(f"{inputs['case']}, {rule}: update {update} isn't clipped; lower clip_norm")
        optimizer.step()
        for key, value in (("loss", loss.item()), ("norm", norm.item()), ("counted", counted)):
            scalars[key].append(value)
        if update in inputs["stored_updates"]:
            tensors[f"gradient.{update}"] = gradients
            tensors[f"weight.{update}"] = {name: channels_last(p.detach().clone()) for name, p in parameters}
            buffers[str(update)] = {name: b.double().flatten().tolist() for name, b in model.named_buffers()}
    return scalars, tensors, buffers


def write_case(text, provenance):
    inputs = json.loads(text)
    names = [w["name"] for w in inputs["weights"]]
    scalars, arrays, buffers = {}, {}, {}
    for rule in inputs["settings"]:
        scalars[rule], tensors, buffers[rule] = train(inputs, rule)
        arrays |= {f"{rule}.{key}": value for key, value in tensors.items()}
    # The first gradient is made before any update: it doesn't depend on the rule and is stored once.
    first = [arrays.pop(f"{rule}.gradient.1") for rule in inputs["settings"]]
    if any(not torch.equal(first[0][n], other[n]) for other in first for n in names):
        raise SystemExit(f"{inputs['case']}: the first gradients differ")
    arrays = {"gradient.1": first[0]} | arrays
    index = {
        "case": inputs["case"],
        "provenance": provenance | {"seed": inputs["seed"], "inputs_sha256": hashlib.sha256(text.encode()).hexdigest()},
        "scalars": scalars,
        "arrays": list(arrays),
        "parameters": [{"name": w["name"], "shape": w["shape"]} for w in inputs["weights"]],
    }
    if any(by_update["1"] for by_update in buffers.values()):
        index["buffers"] = buffers
    flat = torch.cat([array[n].flatten() for array in arrays.values() for n in names])
    (DATA / f"{inputs['case']}.bin").write_bytes(struct.pack(f"<{flat.numel()}d", *flat.tolist()))
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in index.items())
    (DATA / f"{inputs['case']}.json").write_text("{\n" + lines + "\n}\n")
    print(f"{inputs['case']}: {len(names)} parameters, {sum(math.prod(w['shape']) for w in inputs['weights'])} elements")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden_export", type=pathlib.Path, help="the program of the build tree that writes the inputs")
    program = parser.parse_args().golden_export.resolve()
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    provenance = {
        "command": "python3 validation/golden/make_golden.py build/release/tests/golden_export",
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "dtype": "float64",
    }
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        for path in sorted(pathlib.Path(folder).glob("*.json")):
            write_case(path.read_text(), provenance)


if __name__ == "__main__":
    main()
