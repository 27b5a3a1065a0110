"""The encoders of all seven families as one float64 graph that reads nothing but a bundle.

Written from the model descriptions of the papers and the published code's behaviour; one place, so that what sets a family
apart is visible: prefix tokens, position rows, rotary tables, mask, tokenizer, extra norms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from layers import Model, Rope, Stack, block
from positions import Grid, decode_ids, resize_table, rope_tables

#: Resize rule of a stored 2-D table when neither the test nor the file names one.
FAMILY_RULE = {"ijepa": "bicubic_size", "lewm": "bicubic_size", "hfvit": "bicubic_offset01"}

#: `jepa.enc.pos_interp` to the rule's name in `options.pos_interp` of a test.
FILE_RULE = {"offset": "bicubic_offset01", "size": "bicubic_size", "antialias": "bicubic_antialias"}


@dataclass(frozen=True)
class Encoded:
    """What an encoder gives: `tokens [B, N, D]`, and `hier`, one `[B, N, D]` per hierarchical layer (V-JEPA 2.1)."""

    tokens: Tensor
    hier: list[Tensor]
    grid: Grid
    prefix: int


def encoder_stack(model: Model) -> Stack:
    """What all encoder blocks share."""
    return Stack(
        n_layer=model.int("enc.n_layer"),
        n_head=model.int("enc.n_head"),
        eps=model.float("enc.ln_eps", 1e-6),
        act=str(model.key("enc.act", "gelu_erf")),
    )


def tokenize(model: Model, pixels: Tensor) -> tuple[Tensor, Grid]:
    """Pixels `[B, C, T, H, W]` to patch tokens `[B, N, D]`, frame-major, and their grid."""
    name, tubelet = "enc.patch_embed", model.int("enc.tubelet_size", 1)
    if model.family == "vjepa2_1" and pixels.shape[2] == 1:
        name, tubelet = "enc.patch_embed_img", 1
    if pixels.shape[2] < tubelet:
        pixels = pixels.repeat(1, 1, tubelet, 1, 1)
    b, c, frames, height, width = pixels.shape
    p = model.int("enc.patch_size")
    gt, gh, gw = frames // tubelet, height // p, width // p
    x = pixels[:, :, : gt * tubelet, : gh * p, : gw * p].reshape(b, c, gt, tubelet, gh, p, gw, p)
    x = x.permute(0, 2, 4, 6, 1, 3, 5, 7).reshape(b, gt * gh * gw, c * tubelet * p * p)
    return model.linear(name, x), (gt, gh, gw)


def position_rows(model: Model, grid: Grid, image: tuple[int, int], rule: str | None) -> Tensor:
    """The position rows of the patches on `grid`, resized from the stored table where it has another grid."""
    table = model.tensor("enc.pos_embed")
    if bool(model.key("enc.cls_token", False)):
        table = table[1:]
    side = model.int("enc.img_size") // model.int("enc.patch_size")
    native = (table.shape[0] // (side * side), side, side)
    if model.family == "vjepa":
        return table if grid == native else resize_table(table, native, grid, "linear")
    if math.prod(grid) == table.shape[0] and image[0] == image[1]:
        return table
    stored = model.bundle.keys.get("jepa.enc.pos_interp")
    rule = rule or (FILE_RULE[str(stored)] if stored else FAMILY_RULE[model.family])
    return resize_table(table, native, grid, rule)


def rotary(model: Model, ids: Tensor, grid: Grid, prefix: int) -> Rope:
    """Rotary tables of the tokens `ids [B, n]` (or `[n]`), with still rows for the prefix tokens in front."""
    _, gh, gw = grid
    if "rope_crop_grid" in model.deviations:
        gh = gw = model.int("enc.img_size") // model.int("enc.patch_size")
    if "ids_ignored" in model.deviations:
        ids = torch.arange(ids.shape[-1]).expand_as(ids)
    positions = decode_ids(ids, gh, gw)
    if bool(model.key("enc.rope_interpolate", False)):
        reference = model.int("enc.rope_ref_grid", 256 // model.int("enc.patch_size"))
        for axis, side in ((1, gh), (2, gw)):
            if side > 1:
                positions[..., axis] *= (reference - 1) / (side - 1)
    head_dim = model.int("enc.embed_dim") // model.int("enc.n_head")
    layout = "interleaved" if model.family == "vjepa2_1" else "tiled"
    layout = str(model.key("enc.rope_freq_layout", layout))
    cos, sin = rope_tables(positions, head_dim, model.float("enc.rope_theta", 10000.0), layout)
    if prefix:
        if "cls_is_patch_0" in model.deviations:
            ids = torch.cat((ids[..., :prefix], ids + prefix), dim=-1)
            cos, sin = rope_tables(decode_ids(ids, gh, gw), head_dim, 10000.0, layout)
        else:
            still = (*cos.shape[:-2], prefix, head_dim)
            cos = torch.cat((torch.ones(still, dtype=cos.dtype), cos), dim=-2)
            sin = torch.cat((torch.zeros(still, dtype=sin.dtype), sin), dim=-2)
    return (cos[:, None], sin[:, None]) if cos.dim() == 3 else (cos, sin)


def block_causal_mask(model: Model, grid: Grid) -> Tensor:
    """`[1 + N, 1 + N]`: patches see their own and earlier frames, CLS sees all, no patch sees CLS."""
    gt, gh, gw = grid
    frame = torch.arange(gt * gh * gw) // (gh * gw)
    mask = torch.ones(len(frame) + 1, len(frame) + 1, dtype=torch.bool)
    mask[1:, 1:] = frame[:, None] >= frame[None, :]
    mask[1:, 0] = "cls_column_open" in model.deviations
    return mask


def encode(model: Model, pixels: Tensor, ctx_ids: Tensor | None = None, rule: str | None = None) -> Encoded:
    """Runs the encoder on normalised pixels `[B, C, T, H, W]`.

    With `ctx_ids [B, n]` only those patches enter the blocks, in that order, each at its own position. `rule` overrides how
    a stored 2-D table is resized.
    """
    x, grid = tokenize(model, pixels)
    b, n, d = x.shape
    if model.key("enc.pos_type") != "rope3d":
        x = x + position_rows(model, grid, tuple(pixels.shape[-2:]), rule)
    if model.family == "vjepa2_1":
        x = x + model.tensor("enc.mod_embed_img" if pixels.shape[2] == 1 else "enc.mod_embed_video")
    if ctx_ids is not None:
        x = torch.gather(x, 1, ctx_ids[..., None].expand(-1, -1, d))
    prefix = 0
    if bool(model.key("enc.cls_token", False)):
        cls = model.tensor("enc.cls_token").reshape(1, 1, d)
        if model.key("enc.pos_type") != "rope3d":
            cls = cls + model.tensor("enc.pos_embed")[0]
        parts = [cls.expand(b, 1, d)]
        if model.int("enc.n_registers", 0):
            parts.append(model.tensor("enc.reg_tokens").expand(b, -1, d))
        x = torch.cat((*parts, x), dim=1)
        prefix = 1 + model.int("enc.n_registers", 0)
    rope = None
    if model.key("enc.pos_type") == "rope3d":
        rope = rotary(model, torch.arange(n) if ctx_ids is None else ctx_ids, grid, prefix)
    mask = block_causal_mask(model, grid) if model.key("enc.attn_mode", "full") == "block_causal" else None
    stack = encoder_stack(model)
    layers = [int(i) for i in model.bundle.keys.get("jepa.enc.hier_layers", [])]
    hier = []
    for i in range(stack.n_layer):
        x = block(model, f"enc.blk.{i}", stack, x, rope, mask)
        if i in layers:
            hier.append(model.norm(f"enc.hier_norm.{layers.index(i)}", x, stack.eps))
    return Encoded(model.norm("enc.norm", x, stack.eps), hier, grid, prefix)


def pooled(model: Model, encoded: Encoded) -> Tensor:
    """The family's vector `[B, D]`: the CLS row, or the mean of the tokens."""
    return encoded.tokens[:, 0] if encoded.prefix else encoded.tokens.mean(1)


def predictor_input(model: Model, encoded: Encoded) -> Tensor:
    """V-JEPA 2.1: the last hierarchical output, or all of them joined, as `jepa.pred.n_hier_in` says."""
    return torch.cat(encoded.hier, dim=-1) if model.int("pred.n_hier_in", 1) > 1 else encoded.hier[-1]
