"""Makes the checkpoints that the readers are tested on: crates/jepa-gguf/tests/fixtures/checkpoint.

Number i of a tensor is i/8 - 1, which every float type holds exactly; in float64 it is i/3. Run from the repository's root:

    python tests/reference/checkpoints.py

Versions as in requirements.txt.
"""

import argparse
import collections
import json
import pathlib
import shutil

import numpy as np
import torch
from safetensors.torch import save_file

OUT = pathlib.Path("crates/jepa-gguf/tests/fixtures/checkpoint")


def eighths(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    count = int(np.prod(shape, dtype=int))
    return (torch.arange(count, dtype=torch.float64) / 8 - 1).reshape(shape).to(dtype)


def types() -> dict:
    return {
        "f64": (torch.arange(6, dtype=torch.float64) / 3).reshape(2, 3),
        "f32": eighths(2, 3),
        "f16": eighths(3, 2, dtype=torch.float16),
        "bf16": eighths(6, dtype=torch.bfloat16),
        "scalar": eighths(),
        "empty": eighths(0, 4),
        "i64": torch.tensor(7),
        "i32": torch.arange(3, dtype=torch.int32),
        "u8": torch.arange(5, dtype=torch.uint8),
        "bool": torch.tensor([True, False]),
    }


def views() -> dict:
    base = eighths(4, 6)
    return {
        "base": base,
        "transposed": base.t(),
        "row": base[2],
        "columns": base[:, 1:3],
        "permuted": base.view(2, 3, 4).permute(2, 0, 1),
        "every_other": base.view(-1)[::2],
        "same_again": base,
        "unsqueezed": torch.arange(3.0).expand(1, -1),
        "expanded": base[:1, :1].expand(3, 4),
    }


def training() -> dict:
    """What a training loop saves, with what it saves by accident."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    opt = torch.optim.AdamW(net.parameters(), lr=0.125)
    net(torch.ones(4, 2)).sum().backward()
    opt.step()
    with torch.no_grad():
        net[0].weight.copy_(eighths(3, 2))
    attributes = torch.nn.Parameter(eighths(2))
    attributes.origin = "elsewhere"
    return {
        "target_encoder": collections.OrderedDict((f"module.{k}", v) for k, v in net.state_dict().items()),
        "encoder": net.state_dict(),
        "opt": opt.state_dict(),
        "scaler": None,
        "epoch": 3,
        "seed": -5,
        "initial_seed": 2**63 + 11,
        "best": True,
        "loss": np.float64(0.5),
        "loss_f32": np.float32(0.25),
        "steps": np.int64(1234),
        "large_step": np.uint16(65535),
        "done": np.bool_(True),
        "date": np.datetime64("2024-01-01"),
        "words": ["a", {"b": "ü"}, (1, 2.5)],
        "args": argparse.Namespace(lr=1e-3, name="tiny", folder=pathlib.PosixPath("/data"), sizes=[2, 3]),
        "milestones": collections.Counter([30, 30, 60]),
        "groups": collections.defaultdict(list, {"x": [1]}),
        "names": {"only"},
        "numpy_rng": np.random.RandomState(0).get_state(),
        "torch_rng": torch.get_rng_state()[:64].clone(),
        "device": torch.device("cpu"),
        "dtype": torch.float32,
        "size": torch.Size([4, 5]),
        "raw": b"bytes",
        "parameter": torch.nn.Parameter(eighths(2)),
        "attributes": attributes,
        "layers": [eighths(2), eighths(3)],
    }


def save(name: str, value: object) -> None:
    torch.save(value, OUT / f"{name}.pt")
    torch.save(value, OUT / f"{name}-legacy.pt", _use_new_zipfile_serialization=False)


def shards(folder: str, suffix: str, write: object) -> None:
    """Two shards with their index."""
    to = OUT / folder
    to.mkdir()
    parts = [{"a.weight": eighths(2, 3), "c.weight": eighths(3)}, {"b.weight": eighths(4)}]
    names = [f"{suffix.partition('.')[0]}-{i + 1:05}-of-00002.{suffix.partition('.')[2]}" for i in range(2)]
    for part, name in zip(parts, names):
        write(part, to / name)
    weight_map = {k: name for part, name in zip(parts, names) for k in part}
    index = {"metadata": {"total_size": 52}, "weight_map": weight_map}
    (to / f"{suffix}.index.json").write_text(json.dumps(index, indent=2) + "\n")


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    save("types", types())
    save("views", views())
    save("training", training())
    torch.save(training(), OUT / "protocol-5.pt", pickle_protocol=5)
    torch.save({"a": torch.arange(3).to(torch.uint16)}, OUT / "uint16.pt")
    torch.save({"a": eighths(2).to(torch.float8_e4m3fn)}, OUT / "float8.pt")
    torch.save({"a": eighths(2).to(torch.complex64)}, OUT / "complex.pt")
    torch.save(torch.nn.Linear(1, 1), OUT / "module.pt")
    torch.save(eighths(2), OUT / "bare.pt")
    torch.jit.script(torch.nn.Linear(1, 1)).save(OUT / "script.pt")
    save_file({k: v.contiguous() for k, v in types().items()}, OUT / "types.safetensors", {"format": "pt"})
    shards("shards", "model.safetensors", save_file)
    shards("bin-shards", "pytorch_model.bin", torch.save)
    both = OUT / "both"
    both.mkdir()
    save_file({"from": torch.ones(1)}, both / "model.safetensors")
    torch.save({"from": torch.zeros(1)}, both / "pytorch_model.bin")


if __name__ == "__main__":
    main()
