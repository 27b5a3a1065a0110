"""V-JEPA (1): clips, a three-dimensional sincos table resized trilinearly."""

from __future__ import annotations

from pathlib import Path

from bundle_keys import IMAGENET, encoder, head, predictor, preprocess, start
from case_writer import Case
from flips import Flip, eps, key, qkv_order
from positions import sincos3d
from weights import Recipe

VIDEO = {"layout": "BCTHW", "pooling": "mean"}
OTHER_GRIDS = ((4, 24, 20), (6, 16, 16), (2, 8, 12))


def build(root: Path) -> list[tuple[Case, list[Flip]]]:
    """Writes the family's case."""
    bundle = start("vjepa", "vjepa", "video", encoder(48, 2, 3, 64, 4, 16, "sincos3d", tubelet=2, frames=4))
    predictor(bundle, "masked", 40, 1, 2, 80, n_mask_tokens=2, out_dim=48)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 18, "bilinear", None)
    recipe = Recipe("vjepa", bundle)
    recipe.encoder(table=1.4 * sincos3d((2, 4, 4), 48, uniform_power=True))
    recipe.masked_predictor(table=1.4 * sincos3d((2, 4, 4), 40, uniform_power=False))
    case = Case(root / "vjepa", bundle, "V-JEPA (1) encoder and masked predictor, sincos3d table", "float64 graph")
    case.pixels("enc_native", (2, 3, 4, 16, 16))
    case.test("enc_native", "encode", {"pixels": "enc_native.pixels"}, ("tokens", "pooled"), VIDEO)
    for t, h, w in OTHER_GRIDS:
        name = f"enc_{t}x{h}x{w}"
        case.pixels(name, (1, 3, t, h, w))
        options = VIDEO | {"pos_interp": "trilinear"}
        case.test(name, "encode", {"pixels": f"{name}.pixels"}, ("tokens", "pooled"), options)
    case.ids("enc_masked.ctx_ids", 2, 13, 32)
    inputs = {"pixels": "enc_native.pixels", "ctx_ids": "enc_masked.ctx_ids"}
    case.test("enc_masked", "encode_masked", inputs, ("tokens",), {"layout": "BCTHW"})
    case.ids("pred.tgt_ids", 2, 9, 32)
    inputs = {"context": "enc_masked.tokens", "ctx_ids": "enc_masked.ctx_ids", "tgt_ids": "pred.tgt_ids"}
    for index in (0, 1, 3):
        note = "mask token row is mask_index modulo n_mask_tokens"
        case.test(f"pred_mask{index}", "predict_masked", inputs, ("pred",), {"mask_index": index}, note=note)
    case.finish()
    flips = [
        *eps("enc", "pred"),
        key("enc gelu_tanh", "enc.act", "gelu_tanh"),
        key("pred gelu_tanh", "pred.act", "gelu_tanh"),
        *qkv_order("enc.blk.0", 48),
        Flip("temporal and row parts of the table exchanged", ({"swap_columns": "enc.pos_embed", "at": [0, 16], "count": 16},)),
        Flip("row and column parts of the table exchanged", ({"swap_columns": "enc.pos_embed", "at": [16, 32], "count": 16},)),
        Flip("table frames exchanged", ({"swap_rows": "enc.pos_embed", "at": [0, 16], "count": 16},)),
        Flip("mask tokens exchanged", ({"swap_rows": "pred.mask_tokens", "at": [0, 1], "count": 1},)),
        Flip("predictor without positions", ({"fill": "pred.pos_embed", "with": 0.0},)),
    ]
    return [(case, flips)]
