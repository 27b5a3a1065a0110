"""The GPU half of `cargo xtask gpu`: parity cases and speed on an NVIDIA card, beside PyTorch, in one go.

    python gpu.py JEPA_CLI --cases DIR --out FIGURES.json [--seconds 480]

Needs a jepa-cli that was built with the feature `cuda`, a card, and torch for the comparison; neither Rust nor a network. Every step is written to
FIGURES.json as soon as it is done, most important first; what does not fit into the time is listed there as left out. Both sides run random weights of
the same sizes, after passes that are not timed.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("jepa_cli", type=Path)
arguments.add_argument("--cases", type=Path, required=True, help="folder of parity cases")
arguments.add_argument("--out", type=Path, required=True)
arguments.add_argument("--seconds", type=float, default=480, help="after this long nothing more is started")
arguments.add_argument("--backend", default="cuda")
args = arguments.parse_args()

STARTED = time.monotonic()

# Name, frames of one input, batch; `rollout` is V-JEPA 2-AC's predictor with so many candidates.
ENCODERS = [
    ("vit-l", 16, 1),
    ("vit-s", 1, 32),
    ("vit-h", 1, 32),
    ("vit-b", 1, 32),
    ("vit-l", 64, 1),
    ("vit-s", 1, 1),
    ("vit-h", 1, 1),
    ("vit-b", 1, 1),
    ("vit-l", 16, 32),
]
ROLLOUTS = [16, 64]
DTYPES = ["f16", "bf16", "f32"]

figures = {"machine": {}, "cases": [], "speed": [], "left_out": []}


def save() -> None:
    args.out.write_text(json.dumps(figures, indent=2) + "\n")


def left(what: str, needed: float) -> bool:
    """Whether there is time for a step that takes so many seconds; notes it where there is not."""
    if time.monotonic() - STARTED + needed <= args.seconds:
        return True
    figures["left_out"].append(what)
    save()
    return False


def cli(*words: str, limit: float = 240) -> dict | list:
    """Runs jepa-cli with --json; what it prints, or what went wrong. It may take the time that is left, but not more."""
    limit = min(limit, max(10, args.seconds - (time.monotonic() - STARTED)))
    command = [str(args.jepa_cli), *words, "--backend", args.backend, "--json", "-q"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"longer than {limit:.0f} s"}
    try:
        return json.loads(ran.stdout)
    except json.JSONDecodeError:
        return {"error": ran.stderr.strip()[-500:], "code": ran.returncode}


def machine() -> None:
    figures["machine"] = {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        figures["machine"]["card"] = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        pass
    figures["machine"]["devices"] = cli("devices")


def cases() -> None:
    folders = [str(folder.parent) for folder in sorted(args.cases.glob("*/case.json"))]
    for dtype in ["f32", "f16", "bf16"]:
        if left(f"cases in {dtype}", 60):
            verdict = cli("verify", *folders, "--dtype", dtype)
            lines = verdict.get("lines")
            if lines is None:
                figures["cases"].append({"dtype": dtype, **verdict})
            else:
                passed = sum(line["outcome"] == "pass" for line in lines)
                missed = [line for line in lines if line["outcome"] == "miss"]
                worst = max((line["rel_max"] or 0 for line in lines if line["outcome"] in ("pass", "miss")), default=0)
                figures["cases"].append({"dtype": dtype, "passed": passed, "missed": missed, "worst_rel_max": worst})
            save()


def torch_peer():
    """Encoders as plain as PyTorch code gets, or nothing where there is no torch."""
    try:
        import torch
        import torch.nn.functional as F
        from torch import nn
    except ImportError:
        return None
    figures["machine"]["torch"] = torch.__version__
    if not torch.cuda.is_available():
        return None
    torch.set_grad_enabled(False)

    class Block(nn.Module):
        def __init__(self, dim, heads, hidden):
            super().__init__()
            self.heads = heads
            self.ln1, self.ln2 = nn.LayerNorm(dim, 1e-6), nn.LayerNorm(dim, 1e-6)
            self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

        def forward(self, x):
            b, n, d = x.shape
            q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
            return x + self.down(F.gelu(self.up(self.ln2(x))))

    class Encoder(nn.Module):
        def __init__(self, inputs, dim, heads, hidden, layers):
            super().__init__()
            self.embed = nn.Linear(inputs, dim)
            self.blocks = nn.ModuleList(Block(dim, heads, hidden) for _ in range(layers))
            self.norm = nn.LayerNorm(dim, 1e-6)

        def forward(self, patches):
            x = self.embed(patches)
            for block in self.blocks:
                x = block(x)
            return self.norm(x)

    sizes = {
        "vit-s": (384, 6, 1536, 12, 768),
        "vit-b": (768, 12, 3072, 12, 768),
        "vit-l": (1024, 16, 4096, 24, 1536),
        "vit-h": (1280, 16, 5120, 32, 588),
        "ac": (1024, 16, 4096, 24, 1408),
    }

    def time_of(name, tokens, batch, dtype, compiled):
        dim, heads, hidden, layers, inputs = sizes[name]
        kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[dtype]
        model = Encoder(inputs, dim, heads, hidden, layers).cuda().to(kind).eval()
        patches = torch.randn(batch, tokens, inputs, device="cuda", dtype=kind)
        run = torch.compile(model) if compiled else model
        for _ in range(5):
            run(patches)
        torch.cuda.synchronize()
        times = []
        for _ in range(20):
            started = time.perf_counter()
            run(patches)
            torch.cuda.synchronize()
            times.append((time.perf_counter() - started) * 1e3)
        times.sort()
        return (times[9] + times[10]) / 2

    return time_of


def speed(time_of) -> None:
    def row(name, frames, batch, task, peer, dtypes):
        tokens = None
        for dtype in dtypes:
            what = f"{task} {name}, {frames} frames, batch {batch}, {dtype}"
            if not left(what, 40):
                continue
            words = ["bench", "--shape", name, "--task", task, "--batch", str(batch), "--dtype", dtype, "--repeat", "20"]
            ours = cli(*words, *(["--frames", str(frames)] if frames > 1 else []), "--no-self-check")
            line = {"task": task, "shape": name, "frames": frames, "batch": batch, "dtype": dtype}
            if isinstance(ours, list):
                tokens = ours[0]["tokens"]
                line |= {"tokens": tokens, "ms_median": ours[0]["ms_median"], "ms_min": ours[0]["ms_min"]}
            else:
                line |= ours
            if time_of and tokens and peer:
                for compiled in [False, True]:
                    key = "torch_compiled_ms" if compiled else "torch_ms"
                    try:
                        line[key] = time_of(peer, tokens, batch, dtype, compiled)
                    except Exception as error:  # noqa: BLE001 (whatever it is, the other figures stand)
                        line[key + "_error"] = str(error)[-300:]
            figures["speed"].append(line)
            save()

    for name, frames, batch in ENCODERS[:4]:
        row(name, frames, batch, "encoder", name, DTYPES[:2])
    for candidates in ROLLOUTS:
        row("vit-g", 1, candidates, "rollout", None, DTYPES[:2])
    for name, frames, batch in ENCODERS[4:]:
        row(name, frames, batch, "encoder", name, DTYPES[:2])
    row("vit-l", 16, 1, "encoder", "vit-l", DTYPES[2:])


machine()
save()
cases()
speed(torch_peer())
figures["seconds"] = time.monotonic() - STARTED
save()
print(f"{args.out}: {len(figures['speed'])} timings, {len(figures['left_out'])} left out", file=sys.stderr)
