"""Writes a seeded encoder of full size as a case of its own: `full_size.py OUT [--size vit-l] [--outliers] [--f16] [--q8-0]`.

`vit-l` is V-JEPA 2's: 1024 wide, 24 layers, 16 heads, 256-pixel clips of 16 frames (2048 tokens); `vit-s` LeJEPA's: 384 wide, 12
layers, 6 heads, 224-pixel pictures (197 tokens). The weights mean nothing; the case serves to measure memory, time and the error
that grows with depth. `--outliers` gives three channels of the stream activations in the hundreds from the third block on, as
trained ViTs have. Expected tokens come from the float64 graph and, with `--hf`, are held against transformers' VJEPA2Model in float64.
Takes up to 2 GB of disk, 8 GB of memory and some minutes; not committed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import encoder as graph
import hf_models
from bundle_keys import IMAGENET, encoder, head, preprocess, rope, start
from case_writer import Case
from gguf_bundle import Bundle
from layers import Model
from weights import Recipe, normal_like

#: Channels of the stream and what the third block adds to them: nothing on the whole, so that the mean of a row stays near zero.
OUTLIERS = {7: 150.0, 100: -280.0, 300: 130.0}

#: The block that adds it.
OUTLIER_BLOCK = 2


def streams(model: Model, pixels: torch.Tensor) -> list[torch.Tensor]:
    """The stream behind every block."""
    seen: list[torch.Tensor] = []
    plain = graph.block

    def watched(*args: object, **more: object) -> torch.Tensor:
        seen.append(plain(*args, **more))
        return seen[-1]

    graph.block = watched
    graph.encode(model, pixels)
    graph.block = plain
    return seen


def add_outliers(bundle: Bundle, pixels: torch.Tensor) -> None:
    """Gives the stream its large channels, and the norms behind them weights that leave the other channels as they were.

    Without the second part scores would grow with depth until attention is a choice of one key, and no arithmetic would be exact enough.
    """
    tensors, dim = bundle.tensors, int(bundle.keys["jepa.enc.embed_dim"])
    channels = list(OUTLIERS)
    ordinary = [float(x.var(unbiased=False)) for x in streams(Model(bundle), pixels)]
    down = f"enc.blk.{OUTLIER_BLOCK}.ffn_down"
    tensors[f"{down}.bias"][channels] += np.array(list(OUTLIERS.values()), np.float32)
    # Not quite the same for every token.
    tensors[f"{down}.weight"][channels] *= 10.0
    added = sum(value**2 for value in OUTLIERS.values()) / dim
    for name, values in tensors.items():
        block = int(name.split(".")[2]) if name.startswith("enc.blk.") else len(ordinary)
        if ".ln" in name and block > OUTLIER_BLOCK or name.startswith("enc.norm"):
            # The second norm of a block comes behind its attention, half way to the stream behind it.
            before = ordinary[block - 1] if ".ln2" not in name else (ordinary[block - 1] + ordinary[block]) / 2
            if name.endswith(".weight"):
                gain = np.float32(np.sqrt((before + added) / before))
                values *= gain
                values[channels] /= gain**2


def vit_l(layers: int) -> Bundle:
    """V-JEPA 2, rotary positions."""
    keys = encoder(1024, layers, 16, 4096, 16, 256, "rope3d", tubelet=2, frames=16, **rope("tiled"))
    bundle = start("full_size", "vjepa2", "video", keys)
    Recipe("full_size", bundle).encoder()
    return bundle


def vit_s(layers: int) -> Bundle:
    """LeJEPA, a learned table and a CLS token."""
    keys = encoder(384, layers, 6, 1536, 16, 224, "learned", cls_token=True)
    bundle = start("full_size", "hfvit", "image", keys)
    Recipe("full_size", bundle).encoder(table=normal_like("full_size/table", (197, 384)))
    return bundle


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the case directory to create")
    parser.add_argument("--size", choices=["vit-l", "vit-s"], default="vit-l")
    parser.add_argument("--layers", type=int, help="fewer than the size has")
    parser.add_argument("--frames", type=int, default=16, help="frames of a clip; two make 256 tokens")
    parser.add_argument("--outliers", action="store_true", help="channels with activations in the hundreds")
    parser.add_argument("--f16", action="store_true", help="also the f16 file and its outputs")
    parser.add_argument("--q8-0", action="store_true", help="also the q8_0 file and its outputs")
    parser.add_argument("--hf", action="store_true", help="also run transformers and insist on agreement (vit-l)")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    clip = options.size == "vit-l"
    layers = options.layers or (24 if clip else 12)
    bundle = vit_l(layers) if clip else vit_s(layers)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 292 if clip else 256, "bilinear", None)
    if options.outliers:
        # A short clip tells how large the stream is as well as a long one.
        shape = (1, 3, 2, 256, 256) if clip else (1, 3, 1, 224, 224)
        add_outliers(bundle, torch.from_numpy(normal_like("full_size/look", shape)).double())
    began = time.perf_counter()
    case = Case(options.out, bundle, f"{options.size}, seeded", "float64 graph")
    # A case has one bar for all outputs: the one of full size, see docs/numerics.md.
    case.case["tolerance"] = {"cos_min": 0.99999, "rel_max": 1e-3}
    x = case.pixels("input", (1, 3, options.frames, 256, 256) if clip else (1, 3, 224, 224))
    reference = hf_models.VJepa2(case.bundle).encode(x) if options.hf else None
    layout = {"layout": "BCTHW" if clip else "BCHW", "pooling": "mean" if clip else "cls"}
    out = case.test("input", "encode", {"pixels": "input.pixels"}, ("tokens", "pooled"), layout, reference=reference)
    if options.f16:
        case.add_f16()
    if options.q8_0:
        case.add_q8_0("input.pixels")
    case.finish()
    print(f"{out['tokens'].shape[1]} tokens, {layers} layers, {time.perf_counter() - began:.0f} s")
    largest = [f"{float(behind.abs().max()):.3g}" for behind in streams(case.model, x)]
    print("largest of the stream behind every block:", " ".join(largest))
    if options.hf:
        print(f"transformers agrees to {case.agreement:.0e}")


if __name__ == "__main__":
    main()
