"""LeVJEPA: clips with tubelet 1, a CLS token without position, block-causal attention."""

from __future__ import annotations

from pathlib import Path

from bundle_keys import IMAGENET, encoder, head, preprocess, rope, start
from case_writer import Case
from flips import Flip, eps, key, qkv_order
from weights import Recipe


def build(root: Path) -> list[tuple[Case, list[Flip]]]:
    """Writes the family's case: two heads of width 26, so that two lanes of each are not turned."""
    keys = encoder(52, 2, 2, 104, 4, 16, "rope3d", frames=3, cls_token=True, **rope("tiled"), attn_mode="block_causal")
    bundle = start("levjepa", "levjepa", "video", keys)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 16, "bicubic", "shortest_edge")
    Recipe("levjepa", bundle).encoder()
    case = Case(root / "levjepa", bundle, "LeVJEPA video encoder, block-causal", "float64 graph")
    for name, shape in (
        ("enc_native", (2, 3, 3, 16, 16)),
        ("enc_1x16x16", (1, 3, 1, 16, 16)),
        ("enc_5x12x20", (1, 3, 5, 12, 20)),
    ):
        case.pixels(name, shape)
        options = {"layout": "BCTHW", "pooling": "cls"}
        case.test(name, "encode", {"pixels": f"{name}.pixels"}, ("tokens", "pooled"), options)
    case.finish()
    flips = [
        *eps("enc"),
        key("gelu_tanh", "enc.act", "gelu_tanh"),
        key("attention full", "enc.attn_mode", "full"),
        key("rope interleaved", "enc.rope_freq_layout", "interleaved"),
        key("rope interpolated", "enc.rope_interpolate", True),
        *qkv_order("enc.blk.0", 52),
        Flip("patches see CLS", graph="cls_column_open"),
        Flip("CLS turned as patch 0, patches moved by one", graph="cls_is_patch_0"),
    ]
    return [(case, flips)]
