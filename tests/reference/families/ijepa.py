"""I-JEPA: pictures, a sincos table with the column half first, no CLS."""

from __future__ import annotations

from pathlib import Path

import hf_models
from bundle_keys import HALF, IMAGENET, encoder, head, predictor, preprocess, start
from case_writer import Case
from flips import Flip, eps, key, option, qkv_order, swap
from positions import sincos2d
from weights import Recipe

IMAGE = {"layout": "BCHW", "pooling": "mean"}


def fused(root: Path) -> tuple[Case, list[Flip]]:
    """Fused qkv and a masked predictor; also as f16 and q8_0 files."""
    bundle = start("ijepa", "ijepa", "image", encoder(32, 3, 2, 64, 4, 16, "sincos2d"))
    predictor(bundle, "masked", 36, 1, 3, 72, n_mask_tokens=1, out_dim=32)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 16, "bilinear", "squash")
    recipe = Recipe("ijepa", bundle)
    recipe.encoder(table=1.4 * sincos2d(4, 4, 32))
    recipe.masked_predictor(table=1.4 * sincos2d(4, 4, 36))
    case = Case(root / "ijepa", bundle, "I-JEPA encoder and masked predictor", "transformers IJepaModel; float64 graph")
    run = hf_models.ijepa(case.bundle)
    x = case.pixels("enc_native", (2, 3, 16, 16))
    case.test("enc_native", "encode", {"pixels": "enc_native.pixels"}, ("tokens", "pooled"), IMAGE, reference=run(x))
    for h, w in ((24, 20), (12, 28), (8, 32)):
        name = f"enc_{h}x{w}"
        x = case.pixels(name, (1, 3, h, w))
        options = IMAGE | {"pos_interp": "bicubic_size"}
        case.test(name, "encode", {"pixels": f"{name}.pixels"}, ("tokens", "pooled"), options, reference=run(x))
    case.ids("enc_masked.ctx_ids", 2, 7, 16)
    inputs = {"pixels": "enc_native.pixels", "ctx_ids": "enc_masked.ctx_ids"}
    case.test("enc_masked", "encode_masked", inputs, ("tokens",), {"layout": "BCHW"})
    case.ids("pred.tgt_ids", 2, 5, 16)
    inputs = {"context": "enc_masked.tokens", "ctx_ids": "enc_masked.ctx_ids", "tgt_ids": "pred.tgt_ids"}
    case.test("pred", "predict_masked", inputs, ("pred",), {"mask_index": 0})
    case.add_f16()
    case.add_q8_0("enc_native.pixels")
    case.finish()
    flips = [
        *eps("enc", "pred"),
        key("enc gelu_tanh", "enc.act", "gelu_tanh"),
        key("pred gelu_tanh", "pred.act", "gelu_tanh"),
        *qkv_order("enc.blk.0", 32),
        *qkv_order("pred.blk.0", 36),
        Flip("row half of the table first", ({"swap_columns": "enc.pos_embed", "at": [0, 16], "count": 16},)),
        Flip("row half of the predictor's table first", ({"swap_columns": "pred.pos_embed", "at": [0, 18], "count": 18},)),
        Flip("first position row taken for CLS", ({"roll_rows": "enc.pos_embed", "by": -1},)),
        option("resized with offset", "pos_interp", "bicubic_offset01"),
        option("resized with antialias", "pos_interp", "bicubic_antialias"),
    ]
    return case, flips


def split(root: Path) -> tuple[Case, list[Flip]]:
    """Separate q, k, v, head width 22, tanh GELU, a linear head."""
    keys = encoder(44, 2, 2, 70, 4, 16, "sincos2d", qkv_fused=False, act="gelu_tanh")
    bundle = start("ijepa_split", "ijepa", "image", keys)
    head(bundle, "linear_cls", [f"shape {i}" for i in range(5)])
    preprocess(bundle, HALF, 16, "bilinear", "squash")
    recipe = Recipe("ijepa_split", bundle)
    recipe.encoder(table=1.4 * sincos2d(4, 4, 44))
    recipe.linear("head.cls", 5, 44, 1.0, 0.3)
    description = "I-JEPA encoder with separate q, k, v, tanh GELU and a linear head"
    case = Case(root / "ijepa_split", bundle, description, "transformers IJepaForImageClassification")
    run = hf_models.ijepa(case.bundle)
    for name, shape in (("enc_native", (2, 3, 16, 16)), ("enc_64x4", (1, 3, 64, 4))):
        x = case.pixels(name, shape)
        options = IMAGE if name == "enc_native" else IMAGE | {"pos_interp": "bicubic_size"}
        inputs = {"pixels": f"{name}.pixels"}
        case.test(name, "encode", inputs, ("tokens", "pooled"), options, reference=run(x))
    x = case.pixels("classify", (3, 3, 16, 16))
    case.test("classify", "classify", {"pixels": "classify.pixels"}, ("logits", "top1"), IMAGE, reference=run(x))
    case.finish()
    flips = [
        *eps("enc"),
        key("enc gelu_erf", "enc.act", "gelu_erf"),
        *[
            Flip(f"q and {p} exchanged", tuple({"swap": [f"{b}.attn_q.{s}", f"{b}.attn_{p}.{s}"]} for s in ("weight", "bias")))
            for b in ("enc.blk.0",)
            for p in "kv"
        ],
        option("resized with offset", "pos_interp", "bicubic_offset01"),
        swap("attention and MLP norms exchanged", "enc.blk.1.ln1.weight", "enc.blk.1.ln2.weight"),
    ]
    return case, flips


def build(root: Path) -> list[tuple[Case, list[Flip]]]:
    """Writes the family's cases."""
    return [fused(root), split(root)]
