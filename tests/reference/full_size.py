"""Writes a seeded bundle of full size as a case of its own: `full_size.py OUT [--shape vit-l] [--outliers] [--add FILE ...]`.

`vit-l` is V-JEPA 2's encoder (1024 wide, 24 blocks, clips of 16 frames at 256 pixels, 2048 tokens), `vit-s` a picture model (384
wide, 12 blocks, CLS and 196 patches). The weights mean nothing; the case serves to measure memory, time and the error that grows
with depth. Expected tokens come from the float64 graph and, with `--hf`, are held against transformers' VJEPA2Model in float64.

`--outliers` gives the stream what trained ViTs have: a few channels with values in the hundreds, made by early MLPs and kept to
the end, and norms whose weights make up for them. The largest value after every block is printed.

`--add FILE` computes, for a file already in OUT (the product's `quantize` made it from `model-f32.gguf`), the float64 result on
that file's own dequantised weights, and adds it to the case under the type in the file's name, `model-<type>.gguf`.

ViT-L takes about 1.3 GB of disk, 8 GB of memory and two minutes for each file; not committed.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save
from torch import Tensor

import hf_models
from bundle_keys import IMAGENET, encoder, head, preprocess, rope, start
from case_writer import Case
from gguf_bundle import Bundle, read
from layers import Model
from replay import run_test
from weights import Recipe, normal_like

#: The bar at full size: rows at 0.99999, and a largest difference that may grow with the root of the tokens beyond 2048.
COS_MIN, REL_MAX = 0.99999, 1e-3

#: Channels of the stream that early MLPs drive far out, and the block and the value that each is driven by and to.
OUTLIERS = {17: (1, 320.0), 101: (1, -180.0), 203: (2, 450.0), 290: (2, -260.0), 333: (3, 150.0)}

#: How far the other values of the stream are scaled up, to the order of 1 to 10 that trained models have.
ORDINARY = 10.0


class Watched(Model):
    """A model that prints the largest value of the stream before every block and before the last norm."""

    def norm(self, name: str, x: Tensor, eps: float) -> Tensor:
        """As the model's, which is where the stream can be seen."""
        if name.endswith(".ln1") or name == "enc.norm":
            print(f"{name:16} largest {float(x.abs().max()):8.2f}, median of the channels' {float(x.abs().amax((0, 1)).median()):6.2f}")
        return super().norm(name, x, eps)


def add_outliers(bundle: Bundle) -> None:
    """Drives the channels of `OUTLIERS` out by biases and rows of early `ffn_down`, and fits the weights of later norms."""
    tensors = bundle.tensors
    layers, width = int(bundle.keys["jepa.enc.n_layer"]), int(bundle.keys["jepa.enc.embed_dim"])
    stream = ["enc.patch_embed.weight", "enc.patch_embed.bias", "enc.cls_token", "enc.pos_embed"]
    for i in range(layers):
        stream += [f"enc.blk.{i}.{part}.{kind}" for part in ("attn_out", "ffn_down") for kind in ("weight", "bias")]
    for name in stream:
        if name in tensors:
            tensors[name] = tensors[name] * np.float32(ORDINARY)
    for channel, (block, value) in OUTLIERS.items():
        tensors[f"enc.blk.{block}.ffn_down.bias"][channel] += np.float32(value)
        # Tokens differ there too, by a tenth of the value or so.
        tensors[f"enc.blk.{block}.ffn_down.weight"][channel] *= np.float32(abs(value) / 10.0)
    channels = list(OUTLIERS)
    for i in range(layers + 1):
        out = sum(value**2 for block, value in OUTLIERS.values() if block < i) / width
        for norm in (f"enc.blk.{i}.ln1", f"enc.blk.{i}.ln2") if i < layers else ("enc.norm",):
            weight = tensors[f"{norm}.weight"]
            weight *= np.float32(math.sqrt(1.0 + out / (4.0 + 2.0 * i)))
            weight[channels] *= np.float32(0.02)


def vit_l(options: argparse.Namespace) -> tuple[Bundle, np.ndarray | None, tuple[int, ...], dict[str, str]]:
    """V-JEPA 2's ViT-L: bundle without tensors, position table, shape of the pixels, options of the test."""
    keys = encoder(1024, options.layers or 24, 16, 4096, 16, 256, "rope3d", tubelet=2, frames=16, **rope("tiled"))
    bundle = start("full_size", "vjepa2", "video", keys)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 292, "bilinear", None)
    return bundle, None, (1, 3, options.frames, 256, 256), {"layout": "BCTHW", "pooling": "mean"}


def vit_s(options: argparse.Namespace) -> tuple[Bundle, np.ndarray | None, tuple[int, ...], dict[str, str]]:
    """A ViT-S of pictures, as `vit_l`."""
    keys = encoder(384, options.layers or 12, 6, 1536, 16, 224, "learned", cls_token=True)
    bundle = start("full_size", "hfvit", "image", keys)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 256, "bicubic", "shortest_edge")
    return bundle, normal_like("full_size/table", (197, 384)), (1, 3, 224, 224), {"layout": "BCHW", "pooling": "cls"}


def add(folder: Path, name: str) -> None:
    """Adds the file `name` of the case with the outputs of its own weights."""
    case = json.loads((folder / "case.json").read_text())
    stored = load_file(folder / case["expect"])
    kind = name.removeprefix("model-").removesuffix(".gguf")
    model, expect = Model(read(folder / name)), {}
    for test in case["tests"]:
        for role, values in run_test(model, test, stored).items():
            expect[test["outputs"][role]] = values.numpy().astype(np.float32)
    case["models"][kind], case[f"expect_{kind}"] = name, f"expect-{kind}.safetensors"
    (folder / case[f"expect_{kind}"]).write_bytes(save(expect))
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def create(options: argparse.Namespace) -> None:
    """The case with its f32 file."""
    bundle, table, shape, layout = {"vit-l": vit_l, "vit-s": vit_s}[options.shape](options)
    Recipe("full_size", bundle).encoder(table=table)
    if options.outliers:
        add_outliers(bundle)
    case = Case(options.out, bundle, f"{options.shape}, seeded", "float64 graph")
    case.case["tolerance"] = {"cos_min": COS_MIN, "rel_max": REL_MAX}
    case.model = Watched(case.bundle)
    clip = case.pixels("input", shape)
    reference = hf_models.VJepa2(case.bundle).encode(clip) if options.hf else None
    case.test("input", "encode", {"pixels": "input.pixels"}, ("tokens", "pooled"), layout, reference=reference)
    case.finish()
    if options.hf:
        print(f"transformers agrees to {case.agreement:.0e}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the case directory to create, or with --add to add to")
    parser.add_argument("--shape", choices=("vit-l", "vit-s"), default="vit-l")
    parser.add_argument("--layers", type=int, help="blocks, where not all of them")
    parser.add_argument("--frames", type=int, default=16, help="frames of ViT-L's clip; two make 256 tokens")
    parser.add_argument("--outliers", action="store_true", help="a few channels in the hundreds")
    parser.add_argument("--hf", action="store_true", help="also run transformers and insist on agreement (vit-l)")
    parser.add_argument("--add", nargs="+", metavar="FILE", help="model-<type>.gguf files of OUT to add")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    began = time.perf_counter()
    if options.add:
        for name in options.add:
            add(options.out, name)
    else:
        create(options)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
