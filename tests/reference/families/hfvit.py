"""DINOv2-style pictures: a CLS token with a position row, registers, layer scale, two resize rules."""

from __future__ import annotations

from pathlib import Path

import hf_models
from bundle_keys import IMAGENET, encoder, head, preprocess, start
from case_writer import Case
from flips import Flip, eps, key, option, qkv_order, swap
from weights import Recipe, normal_like

IMAGE = {"layout": "BCHW", "pooling": "cls"}


def registers(root: Path) -> tuple[Case, list[Flip]]:
    """Three registers and layer scale; the file names its own resize rule."""
    keys = encoder(48, 2, 4, 96, 4, 16, "learned", cls_token=True, n_registers=3, layer_scale=True, pos_interp="antialias")
    bundle = start("hfvit_registers", "hfvit", "image", keys)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 18, "bicubic", "shortest_edge")
    Recipe("hfvit_registers", bundle).encoder(table=normal_like("hfvit_registers/table", (17, 48)))
    description = "DINOv2 with registers and layer scale, table resized with antialias"
    case = Case(root / "hfvit_registers", bundle, description, "transformers Dinov2WithRegistersModel")
    run = hf_models.dinov2_registers(case.bundle)
    x = case.pixels("enc_native", (2, 3, 16, 16))
    case.test("enc_native", "encode", {"pixels": "enc_native.pixels"}, ("tokens", "pooled"), IMAGE, reference=run(x))
    other = ("tokens_bicubic_size", "tokens_bicubic_offset01")
    for h, w in ((24, 20), (8, 12)):
        name = f"enc_{h}x{w}"
        x = case.pixels(name, (1, 3, h, w))
        options = IMAGE | {"pos_interp": "bicubic_antialias"}
        inputs, roles = {"pixels": f"{name}.pixels"}, ("tokens", "pooled")
        case.test(name, "encode", inputs, roles, options, reference=run(x), optional=other)
    x = case.pixels("enc_12x28_by_file", (1, 3, 12, 28))
    note = "no pos_interp option: the rule is the file's jepa.enc.pos_interp"
    inputs = {"pixels": "enc_12x28_by_file.pixels"}
    case.test("enc_12x28_by_file", "encode", inputs, ("tokens", "pooled"), IMAGE, reference=run(x), note=note)
    case.finish()
    flips = [
        *eps("enc"),
        key("gelu_tanh", "enc.act", "gelu_tanh"),
        *qkv_order("enc.blk.0", 48),
        Flip("position row of CLS taken for the last patch", ({"roll_rows": "enc.pos_embed", "by": -1},)),
        option("resized without antialias", "pos_interp", "bicubic_size"),
        option("resized with offset", "pos_interp", "bicubic_offset01"),
        key("the file's own rule ignored", "enc.pos_interp", "offset"),
        swap("layer scales exchanged", "enc.blk.0.ls1", "enc.blk.0.ls2"),
        Flip("layer scale left out", ({"fill": "enc.blk.1.ls2", "with": 1.0},)),
        Flip("registers without values", ({"fill": "enc.reg_tokens", "with": 0.0},)),
        Flip("registers exchanged", ({"swap_rows": "enc.reg_tokens", "at": [0, 1], "count": 1},)),
    ]
    return case, flips


def plain(root: Path) -> tuple[Case, list[Flip]]:
    """No registers, no layer scale, head width 22, a linear head, the offset rule by default."""
    bundle = start("hfvit", "hfvit", "image", encoder(44, 2, 2, 66, 4, 16, "learned", cls_token=True))
    head(bundle, "linear_cls", ["circle", "square", "triangle"])
    preprocess(bundle, IMAGENET, 18, "bicubic", "shortest_edge")
    recipe = Recipe("hfvit", bundle)
    recipe.encoder(table=normal_like("hfvit/table", (17, 44)))
    recipe.linear("head.cls", 3, 44, 1.0, 0.3)
    case = Case(root / "hfvit", bundle, "DINOv2-style ViT as lite_ssl trains it, with a linear head", "float64 graph")
    case.pixels("enc_native", (2, 3, 16, 16))
    case.test("enc_native", "encode", {"pixels": "enc_native.pixels"}, ("tokens", "pooled"), IMAGE)
    other = ("tokens_bicubic_size", "tokens_bicubic_antialias")
    for h, w in ((24, 20), (12, 12), (4, 64)):
        name = f"enc_{h}x{w}"
        case.pixels(name, (1, 3, h, w))
        options = IMAGE | {"pos_interp": "bicubic_offset01"}
        inputs, roles = {"pixels": f"{name}.pixels"}, ("tokens", "pooled")
        note = "as many patches as the table has rows, but not square: the table is resized" if w == 64 else None
        case.test(name, "encode", inputs, roles, options, optional=other, note=note)
    case.pixels("enc_28x20_by_family", (1, 3, 28, 20))
    note = "neither option nor key: the family's rule"
    inputs = {"pixels": "enc_28x20_by_family.pixels"}
    case.test("enc_28x20_by_family", "encode", inputs, ("tokens", "pooled"), IMAGE, note=note)
    case.test("classify", "classify", {"pixels": "enc_native.pixels"}, ("logits", "top1"), IMAGE)
    case.finish()
    flips = [
        *eps("enc"),
        key("gelu_tanh", "enc.act", "gelu_tanh"),
        *qkv_order("enc.blk.0", 44),
        Flip("position row of CLS taken for the last patch", ({"roll_rows": "enc.pos_embed", "by": -1},)),
        option("resized without offset", "pos_interp", "bicubic_size"),
        option("resized with antialias", "pos_interp", "bicubic_antialias"),
    ]
    return case, flips


def build(root: Path) -> list[tuple[Case, list[Flip]]]:
    """Writes the family's cases."""
    return [registers(root), plain(root)]
