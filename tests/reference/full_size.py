"""Writes a seeded V-JEPA 2 bundle of full size as a case of its own: `full_size.py OUT [--layers 24] [--frames 16] [--f16]`.

ViT-L: 1024 wide, 16 heads, 256-pixel clips of 16 frames (2048 tokens). The weights mean nothing; the case serves to measure
memory, time and the error that grows with depth. Expected tokens come from the float64 graph and, with `--hf`, are held
against transformers' VJEPA2Model in float64. Takes about 1.3 GB of disk, 8 GB of memory and some minutes; not committed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

import hf_models
from bundle_keys import IMAGENET, encoder, head, preprocess, rope, start
from case_writer import Case
from weights import Recipe


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the case directory to create")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--frames", type=int, default=16, help="frames of the clip; two make 256 tokens")
    parser.add_argument("--f16", action="store_true", help="also the f16 file and its outputs")
    parser.add_argument("--hf", action="store_true", help="also run transformers and insist on agreement")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    keys = encoder(1024, options.layers, 16, 4096, 16, 256, "rope3d", tubelet=2, frames=16, **rope("tiled"))
    bundle = start("full_size", "vjepa2", "video", keys)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 292, "bilinear", None)
    Recipe("full_size", bundle).encoder()
    began = time.perf_counter()
    case = Case(options.out, bundle, "V-JEPA 2 ViT-L, seeded", "float64 graph")
    clip = case.pixels("clip", (1, 3, options.frames, 256, 256))
    reference = hf_models.VJepa2(case.bundle).encode(clip) if options.hf else None
    layout = {"layout": "BCTHW", "pooling": "mean"}
    out = case.test("clip", "encode", {"pixels": "clip.pixels"}, ("tokens", "pooled"), layout, reference=reference)
    if options.f16:
        case.add_f16()
    case.finish()
    print(f"{out['tokens'].shape[1]} tokens, {options.layers} layers, {time.perf_counter() - began:.0f} s")
    if options.hf:
        print(f"transformers agrees to {case.agreement:.0e}")


if __name__ == "__main__":
    main()
