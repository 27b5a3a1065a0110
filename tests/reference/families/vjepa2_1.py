"""V-JEPA 2.1: pictures and clips, modality vectors, hierarchical outputs, interleaved and rescaled rotary positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bundle_keys import IMAGENET, encoder, head, predictor, preprocess, rope, start
from case_writer import Case
from flips import Flip, copy, eps, key, qkv_order, swap
from weights import Recipe

MASKED_NOTE = "only the tokens listed in ctx_ids enter the blocks (positions from the ids)"


def one(root: Path, name: str, dim: int, layers: list[int], heads: int, n_in: int, out: int) -> tuple[Case, list[Flip]]:
    """A case with `n_in` hierarchical outputs feeding a predictor of width `out` per output."""
    keys = encoder(dim, layers[-1] + 1, heads, dim, 8, 24, "rope3d", tubelet=2, frames=4)
    keys |= rope("interleaved", rope_interpolate=True, rope_ref_grid=32)
    keys |= {"modality_embed": True, "image_patch_embed": True, "hier_layers": layers}
    bundle = start(name, "vjepa2_1", "image+video", keys)
    more = {"n_mask_tokens": 2, "out_dim": out, "n_hier_in": n_in, "modality_embed": True, "context_proj": True}
    more |= {"rope_interpolate": False, "grid_size": 3, "rope_freq_layout": "interleaved"}
    predictor(bundle, "masked", 36, 1, 2, 72, **more)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 27, "bilinear", None)
    recipe = Recipe(name, bundle)
    recipe.encoder()
    recipe.masked_predictor()
    description = f"V-JEPA 2.1 encoder (image and video) and predictor, n_hier_in={n_in}"
    case = Case(root / name, bundle, description, "float64 graph")
    each = tuple(f"hier{k}" for k in range(len(layers) - 1))
    shapes = {"video_4x24x24": (1, 3, 4, 24, 24), "video_2x16x40": (1, 3, 2, 16, 40)}
    shapes |= {"image_24x24": (1, 3, 1, 24, 24), "image_16x40": (1, 3, 1, 16, 40), "image_8x32": (1, 3, 1, 8, 32)}
    if n_in == 1:
        del shapes["video_2x16x40"], shapes["image_8x32"]
    for test, shape in shapes.items():
        case.pixels(test, shape)
        options = {"layout": "BCTHW", "pooling": "mean", "modality": test.split("_")[0]}
        note = "one row of patches: the row position is 0, whatever the scale" if test == "image_8x32" else None
        roles = ("tokens", "pooled", "hier_concat", *(each if test.endswith("24x24") else ()))
        case.test(test, "encode", {"pixels": f"{test}.pixels"}, roles, options, note=note)
    for modality, source, total in (("video", "video_4x24x24", 18), ("image", "image_24x24", 9)):
        batch, test = shapes[source][0], f"encm_{modality}"
        case.ids(f"{test}.ctx_ids", batch, total // 2 + 1, total)
        inputs = {"pixels": f"{source}.pixels", "ctx_ids": f"{test}.ctx_ids"}
        options = {"layout": "BCTHW", "modality": modality}
        case.test(test, "encode_masked", inputs, ("hier_concat",), options, note=MASKED_NOTE)
        case.ids(f"pred_{modality}0.tgt_ids", batch, 5, total)
        for index in (0, 1):
            inputs = {"context": f"{test}.hier_concat", "ctx_ids": f"{test}.ctx_ids", "tgt_ids": f"pred_{modality}0.tgt_ids"}
            options = {"mask_index": index, "modality": modality}
            case.test(f"pred_{modality}{index}", "predict_masked", inputs, ("pred", "context"), options)
    every = np.tile(np.arange(9, dtype=np.int32), (1, 1))
    case.put("pred_all.ctx_ids", every)
    case.put("pred_all.tgt_ids", every)
    inputs = {"context": "image_24x24.hier_concat", "ctx_ids": "pred_all.ctx_ids", "tgt_ids": "pred_all.tgt_ids"}
    case.test("pred_all", "predict_masked", inputs, ("pred", "context"), {"mask_index": 1, "modality": "image"})
    case.finish()
    last = len(layers) - 1
    flips = [
        *eps("enc", "pred"),
        key("enc gelu_tanh", "enc.act", "gelu_tanh"),
        key("enc rope tiled", "enc.rope_freq_layout", "tiled"),
        key("pred rope tiled", "pred.rope_freq_layout", "tiled"),
        key("enc rope not rescaled", "enc.rope_interpolate", False),
        key("rope reference grid 16", "enc.rope_ref_grid", 16),
        key("pred grid 5", "pred.grid_size", 5),
        *qkv_order("enc.blk.0", dim),
        swap("modality vectors exchanged", "enc.mod_embed_img", "enc.mod_embed_video"),
        swap("predictor's modality vectors exchanged", "pred.mod_embed_img", "pred.mod_embed_video"),
        copy("first hierarchical norm for the output", "enc.hier_norm.0", "enc.norm"),
        copy("output norm for every hierarchical output", "enc.norm", "enc.hier_norm.0"),
        swap("predictor's projections exchanged", "pred.proj.bias", "pred.proj_context.bias"),
        Flip("mask tokens exchanged", ({"swap_rows": "pred.mask_tokens", "at": [0, 1], "count": 1},)),
        Flip("kept tokens numbered anew", graph="ids_ignored"),
    ]
    if n_in > 1:
        half = [{"swap_columns": "pred.embed.0.weight", "at": [0, last * dim], "count": dim}]
        flips.append(Flip("hierarchical outputs joined highest first", tuple(half)))
    return case, flips


def build(root: Path) -> list[tuple[Case, list[Flip]]]:
    """Writes the family's cases."""
    return [
        one(root, "vjepa2_1", 32, [0, 2, 3, 4], 1, 4, 32),
        one(root, "vjepa2_1_single", 40, [0, 1], 2, 1, 60),
    ]
