"""Ours against a peer at the same work: pairs of runs, one after the other in random order, and the ratio within each pair.

    python3 benchmarks/compare/compare.py --torch-python venv/bin/python [--modes single ddp] [--pairs 7] [--json FILE]

The peer is PyTorch or another of our programs. A ratio above 1 means that the peer takes longer. See benchmarks/README.md. Exit codes as everywhere: 2 the request is wrong, 3 a run failed.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

import pairs

HERE = pathlib.Path(__file__).resolve().parent
SIZES = dict(layers=4, hidden=512, heads=8, seq=256, vocab=8192, batch=4)


@dataclasses.dataclass(frozen=True)
class Ours:
    program: str
    options: tuple = ()


@dataclasses.dataclass(frozen=True)
class Torch:
    mode: str  # of torch_peer.py


@dataclasses.dataclass(frozen=True)
class Mode:
    """One kind of work, on both sides. The batch grows with the ranks, so that each has --batch."""

    ranks: int
    ours: Ours
    peer: Ours | Torch
    bf16: bool = False

    @property
    def needs_torch(self):
        return isinstance(self.peer, Torch)


EIGHT = ("--microbatches", "8")
EVERY_BLOCK_AGAIN = Ours("checkpointing", ("--recompute", "all", "--rounds", "0"))
ONE_FORWARD_ONE_BACKWARD = Ours("pipedream", EIGHT)
ZERO_BUBBLE = Ours("pipedream", (*EIGHT, "--split-backward", "h1"))
MODES = {
    "single": Mode(1, Ours("serial"), Torch("single")),
    "single-bf16": Mode(1, Ours("serial"), Torch("single"), bf16=True),
    "ddp": Mode(2, Ours("ddp"), Torch("ddp")),
    "ddp-bf16": Mode(2, Ours("ddp"), Torch("ddp"), bf16=True),
    "fsdp": Mode(2, Ours("zero", ("--stage", "3")), Torch("fsdp")),
    "tp": Mode(2, Ours("tensor_parallel"), Torch("tp")),
    # Every transformer block is run again; on our side the embedding is too.
    "checkpoint": Mode(1, EVERY_BLOCK_AGAIN, Torch("checkpoint")),
    "checkpoint-serial": Mode(1, EVERY_BLOCK_AGAIN, Ours("serial")),
    # PyTorch's pipelines don't recompute.
    "gpipe": Mode(2, Ours("gpipe", (*EIGHT, "--recompute", "none")), Torch("gpipe")),
    "1f1b": Mode(2, ONE_FORWARD_ONE_BACKWARD, Torch("1f1b")),
    "interleaved": Mode(2, Ours("pipedream", (*EIGHT, "--virtual-stages", "2")), Torch("interleaved")),
    "zero-bubble": Mode(2, ZERO_BUBBLE, Torch("zero-bubble")),
    "zero-bubble-1f1b": Mode(2, ZERO_BUBBLE, ONE_FORWARD_ONE_BACKWARD),
}


class RequestError(Exception):
    """Exit code 2."""


class RunFailure(Exception):
    """Exit code 3."""


def run(command, **options):
    """Output of a command; a failure shows its last words."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunFailure(f"{shlex.join(command)}: {error}") from None
    if done.returncode != 0:
        last = "\n  ".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise RunFailure(f"{shlex.join(command)} (exit code {done.returncode}):\n  {last}")
    return done.stdout


def size_arguments(a, mode):
    sizes = {name: getattr(a, name) for name in SIZES}
    sizes["batch"] *= mode.ranks
    return [word for name, value in sizes.items() for word in (f"--{name}", str(value))] + [
        "--steps",
        str(a.steps),
        "--warmup",
        str(a.warmup),
    ]


def bind_to_one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def run_ours(a, mode, side):
    """The record of one run."""
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder, "record.json")
        command = [str(pathlib.Path(a.bin, side.program)), "bench", *size_arguments(a, mode), "--data", "synthetic", "--no-verify"]
        command += side.options
        command += ["--dtype", "bf16" if mode.bf16 else "fp32", "--json", str(record), "--out", str(pathlib.Path(folder, "run"))]
        if mode.ranks > 1:
            run(shlex.split(a.mpirun) + ["-n", str(mode.ranks)] + command)
        else:
            run(command, preexec_fn=bind_to_one_core)
        return json.loads(record.read_text())


def run_torch(a, mode, side):
    command = [a.torch_python, str(HERE / "torch_peer.py"), side.mode, *size_arguments(a, mode)]
    return json.loads(run(command + (["--bf16"] if mode.bf16 else [])).strip().splitlines()[-1])


def run_side(a, mode, side):
    """Median step of one run, and what else its side says of it."""
    if isinstance(side, Torch):
        return statistics.median(run_torch(a, mode, side)["step_seconds"]), {}
    record = run_ours(a, mode, side)
    return record["result"]["step_seconds"]["median"], record


def measure_pair(a, mode, rng):
    """One pair, in random order."""
    sides = {"ours": mode.ours, "peer": mode.peer}
    results = {name: run_side(a, mode, sides[name]) for name in rng.sample(list(sides), 2)}
    return {
        "ours_seconds": results["ours"][0],
        "peer_seconds": results["peer"][0],
        "order": list(results),
        "load": os.getloadavg()[0],
        "instruction_set": results["ours"][1].get("software", {}).get("instruction_set"),
    }


def summarise(mode, found):
    ratio, interval, ratios = pairs.paired_ratio([p["peer_seconds"] for p in found], [p["ours_seconds"] for p in found])
    return {
        "peer": "PyTorch" if mode.needs_torch else " ".join((mode.peer.program, *mode.peer.options)),
        "ratio": ratio,
        "ci95": interval,
        "ratios": ratios,
        "ours_seconds": statistics.median(p["ours_seconds"] for p in found),
        "peer_seconds": statistics.median(p["peer_seconds"] for p in found),
        "load": [min(p["load"] for p in found), max(p["load"] for p in found)],
        "pairs": found,
    }


def chip():
    """The processor's name as the system says it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def torch_version(a):
    try:
        return run([a.torch_python, "-c", "import torch; print(torch.__version__)"]).strip()
    except RunFailure as error:
        raise RequestError(f"{a.torch_python} has no PyTorch ({str(error).splitlines()[-1].strip()}); name one with --torch-python") from None


def versions(a):
    torch = torch_version(a) if any(MODES[name].needs_torch for name in a.modes) else None
    ours = pathlib.Path(a.bin, "serial")
    if not ours.exists():
        raise RequestError(f"{ours} doesn't exist (not built, or elsewhere); build it, or name the folder with --bin")
    return {"torch": torch, "ours": run([str(ours), "--version"]).strip().splitlines()[0], "python": platform.python_version()}


def report(a, result):
    """One line a mode."""
    host, sizes, torch = result["host"], result["sizes"], result["versions"]["torch"]
    print(f"{host['chip']}, {host['cores']} cores; {f'PyTorch {torch}; ' if torch else ''}one thread a rank")
    print(" ".join(f"{name} {value}" for name, value in sizes.items()) + f"; medians of {a.steps} steps; the peer's time / ours\n")
    width = max(map(len, ("mode", *result["modes"])))
    print(f" {'mode':<{width}} {'pairs':>5} {'peer ms':>9} {'ours ms':>9} {'ratio':>6}  {'95 % interval':<15} {'load':<10} peer")
    for name, m in result["modes"].items():
        interval = "[{:.2f}, {:.2f}]".format(*m["ci95"]) if m["ci95"] else "under 6 pairs"
        times = f"{1e3 * m['peer_seconds']:>9.1f} {1e3 * m['ours_seconds']:>9.1f} {m['ratio']:>6.2f}"
        load = "{:.1f} to {:.1f}".format(*m["load"])
        print(f" {name:<{width}} {len(m['pairs']):>5} {times}  {interval:<15} {load:<10} {m['peer']}")


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["single", "ddp"], metavar="MODE", help=f"of {', '.join(MODES)}")
    parser.add_argument("--pairs", type=int, default=7, help="runs of each side; 6 or more for an interval [7]")
    parser.add_argument("--steps", type=int, default=12, help="timed steps of a run [12]")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them [3]")
    for name, default in SIZES.items():
        text = f"samples of a rank [{default}]" if name == "batch" else f"[{default}]"
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    parser.add_argument("--bin", default="build/release/bin", help="folder with our programs [build/release/bin]")
    parser.add_argument("--mpirun", default="mpirun --bind-to core", help="launcher of our ranks [mpirun --bind-to core]")
    parser.add_argument("--torch-python", default=sys.executable, help="interpreter that has PyTorch [the one that runs this]")
    parser.add_argument("--seed", type=int, default=1, help="of the order of runs [1]")
    parser.add_argument("--json", help="file for everything that was measured")
    a = parser.parse_args(argv)
    for name in ("pairs", "steps", *SIZES):
        if getattr(a, name) < 1:
            parser.error(f"--{name} {getattr(a, name)} is too small (at least 1)")
    return a


def compare(a):
    rng = random.Random(a.seed)
    host = {"chip": chip(), "cores": len(os.sched_getaffinity(0)), "load_at_start": os.getloadavg()}
    result = {"schema": "shardmark-compare/2", "host": host, "versions": versions(a), "threads_per_rank": 1}
    result["sizes"] = {name: getattr(a, name) for name in SIZES}
    found = {name: [] for name in a.modes}
    for number in range(a.pairs):
        for name in rng.sample(a.modes, len(a.modes)):
            found[name].append(measure_pair(a, MODES[name], rng))
            last = found[name][-1]
            print(f"pair {number + 1} of {a.pairs}, {name}: {last['peer_seconds'] / last['ours_seconds']:.2f}", file=sys.stderr)
    result["modes"] = {name: summarise(MODES[name], of_mode) for name, of_mode in found.items()}
    return result


def main(argv=None):
    a = parse_arguments(argv)
    try:
        result = compare(a)
        report(a, result)
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    except RequestError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    except (RunFailure, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
