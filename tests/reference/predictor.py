"""Masked predictors and classification heads in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from encoder import Encoded, encoder_stack, pooled
from layers import ACTIVATIONS, Model, Stack, attention, block, gelu_erf, layer_norm
from positions import decode_ids, rope_tables


def predictor_stack(model: Model) -> Stack:
    """What all predictor blocks share; eps and activation are the encoder's unless the file says otherwise."""
    return Stack(
        n_layer=model.int("pred.n_layer"),
        n_head=model.int("pred.n_head"),
        eps=model.float("pred.ln_eps", model.float("enc.ln_eps", 1e-6)),
        act=str(model.key("pred.act", model.key("enc.act", "gelu_erf"))),
    )


def predict_masked(
    model: Model, context: Tensor, ctx_ids: Tensor, tgt_ids: Tensor, mask_index: int = 1, modality: str = "video"
) -> tuple[Tensor, Tensor | None]:
    """Predicts the tokens `tgt_ids [B, m]` from the encoded rows `context [B, n, ·]` at `ctx_ids [B, n]`.

    Returns the targets `[B, m, out]` and, where the bundle projects them too, the context rows `[B, n, out]`.
    """
    if model.has("pred.embed.0.weight"):
        c = model.linear("pred.embed.2", gelu_erf(model.linear("pred.embed.0", context)))
    else:
        c = model.linear("pred.embed", context)
    tokens = model.tensor("pred.mask_tokens")
    m = tokens[mask_index % tokens.shape[0]].expand(*tgt_ids.shape, -1)
    ids = torch.cat((ctx_ids, tgt_ids), dim=1)
    x = torch.cat((c, m), dim=1)
    rope = None
    if model.has("pred.pos_embed"):
        x = x + model.tensor("pred.pos_embed")[ids]
    else:
        side = model.int("pred.grid_size", model.int("enc.img_size") // model.int("enc.patch_size"))
        layout = "interleaved" if model.family == "vjepa2_1" else "tiled"
        layout = str(model.key("pred.rope_freq_layout", layout))
        head_dim = model.int("pred.embed_dim") // model.int("pred.n_head")
        cos, sin = rope_tables(decode_ids(ids, side, side), head_dim, model.float("enc.rope_theta", 10000.0), layout)
        rope = (cos[:, None], sin[:, None])
    if model.family == "vjepa2_1":
        x = x + model.tensor("pred.mod_embed_img" if modality == "image" else "pred.mod_embed_video")
    stack = predictor_stack(model)
    for i in range(stack.n_layer):
        x = block(model, f"pred.blk.{i}", stack, x, rope)
    x = model.norm("pred.norm", x, stack.eps)
    n = ctx_ids.shape[1]
    rest = model.linear("pred.proj_context", x[:, :n]) if model.has("pred.proj_context.weight") else None
    return model.linear("pred.proj", x[:, n:]), rest


def classify(model: Model, encoded: Encoded) -> tuple[Tensor, Tensor]:
    """Logits `[B, classes]` and the vector `[B, D]` they were read from."""
    if model.key("head.kind") == "linear_cls":
        vector = pooled(model, encoded)
        return model.linear("head.cls", vector), vector
    stack = encoder_stack(model)
    x = encoded.tokens
    for i in range(model.int("head.n_pool_layers")):
        x = block(model, f"head.blk.{i}", stack, x)
    keys = model.norm("head.xattn.ln_kv", x, stack.eps)
    query = model.tensor("head.query").expand(x.shape[0], 1, -1)
    q = layer_norm(query, stack.eps) if "query_normalised" in model.deviations else query
    q, k, v = model.linear("head.xattn.q", q), model.linear("head.xattn.k", keys), model.linear("head.xattn.v", keys)
    y = query + attention(q, k, v, stack.n_head)
    h = ACTIVATIONS[stack.act](model.linear("head.xattn.ffn_up", model.norm("head.xattn.ln2", y, stack.eps)))
    y = (y + model.linear("head.xattn.ffn_down", h))[:, 0]
    return model.linear("head.cls", y), y
