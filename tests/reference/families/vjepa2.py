"""V-JEPA 2: clips, rotary positions in the tiled layout; masked predictor, attentive head, action-conditioned predictor."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hf_models
from bundle_keys import IMAGENET, encoder, head, predictor, preprocess, rope, start
from case_writer import Case
from flips import Flip, eps, key, qkv_order, swap, swap_rows
from weights import STREAM, Recipe

VIDEO = {"layout": "BCTHW", "pooling": "mean"}
HF_GRID = (
    "`tokens`: positions decoded on the grid of the input; `tokens_hf_grid`: what transformers gives, which decodes the ids on "
    "the crop_size grid"
)


def masked(root: Path) -> tuple[Case, list[Flip]]:
    """Encoder and masked predictor, head widths 22 and 20."""
    keys = encoder(66, 2, 3, 66, 4, 16, "rope3d", tubelet=2, frames=4, **rope("tiled"))
    bundle = start("vjepa2", "vjepa2", "video", keys)
    predictor(bundle, "masked", 40, 1, 2, 80, n_mask_tokens=3, out_dim=66, rope_freq_layout="tiled")
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 18, "bilinear", None)
    recipe = Recipe("vjepa2", bundle)
    recipe.encoder()
    recipe.masked_predictor()
    reference = "transformers VJEPA2Model; other sizes and masks: float64 graph"
    case = Case(root / "vjepa2", bundle, "V-JEPA 2 encoder and masked predictor", reference)
    hf = hf_models.VJepa2(case.bundle)
    native = case.pixels("enc_native", (2, 3, 4, 16, 16))
    inputs = {"pixels": "enc_native.pixels"}
    case.test("enc_native", "encode", inputs, ("tokens", "pooled"), VIDEO, reference=hf.encode(native))
    for t in (1, 3, 6):
        x = case.pixels(f"enc_T{t}", (1, 3, t, 16, 16))
        note = "fewer frames than one tubelet: the clip is repeated to tubelet_size frames" if t == 1 else None
        note = "the frame that does not fill a tubelet is dropped" if t == 3 else note
        inputs = {"pixels": f"enc_T{t}.pixels"}
        case.test(f"enc_T{t}", "encode", inputs, ("tokens", "pooled"), VIDEO, reference=hf.encode(x), note=note)
    for t, h, w in ((4, 24, 12), (2, 20, 28)):
        name = f"enc_{t}x{h}x{w}"
        x = case.pixels(name, (1, 3, t, h, w))
        # transformers' answer is a convention of its own, so it is the reference of the optional output only.
        answer = {"tokens_hf_grid": hf.encode(x)["tokens"]}
        roles, optional = ("tokens", "pooled"), ("tokens_hf_grid",)
        case.test(name, "encode", {"pixels": f"{name}.pixels"}, roles, VIDEO, reference=answer, optional=optional, note=HF_GRID)
    ctx = case.ids("enc_masked.ctx_ids", 2, 13, 32)
    inputs = {"pixels": "enc_native.pixels", "ctx_ids": "enc_masked.ctx_ids"}
    note = "only the tokens listed in ctx_ids enter the blocks (positions from the ids)"
    case.test("enc_masked", "encode_masked", inputs, ("tokens",), {"layout": "BCTHW"}, note=note)
    every = np.tile(np.arange(32, dtype=np.int32), (2, 1))
    all_ids = case.put("pred_all.ctx_ids", every)
    case.put("pred_all.tgt_ids", every)
    inputs = {"context": "enc_native.tokens", "ctx_ids": "pred_all.ctx_ids", "tgt_ids": "pred_all.tgt_ids"}
    answer = hf.predict(native, all_ids, all_ids)
    case.test("pred_all", "predict_masked", inputs, ("pred",), {"mask_index": 1}, reference=answer)
    tgt = case.ids("pred_masked.tgt_ids", 2, 9, 32)
    rows = np.take_along_axis(case.stored["enc_native.tokens"], ctx.numpy()[..., None], axis=1)
    case.put("pred_masked.context", rows)
    inputs = {"context": "pred_masked.context", "ctx_ids": "enc_masked.ctx_ids", "tgt_ids": "pred_masked.tgt_ids"}
    answer = hf.predict(native, ctx, tgt)
    note = "context rows are the encoder outputs gathered at ctx_ids, in that order; output rows follow tgt_ids"
    case.test("pred_masked", "predict_masked", inputs, ("pred",), {"mask_index": 1}, reference=answer, note=note)
    for index in (0, 5):
        note = "mask token row is mask_index modulo n_mask_tokens"
        case.test(f"pred_mask{index}", "predict_masked", inputs, ("pred",), {"mask_index": index}, note=note)
    case.finish()
    flips = [
        *eps("enc", "pred"),
        key("enc gelu_tanh", "enc.act", "gelu_tanh"),
        key("enc rope interleaved", "enc.rope_freq_layout", "interleaved"),
        key("pred rope interleaved", "pred.rope_freq_layout", "interleaved"),
        key("enc rope interpolated", "enc.rope_interpolate", True),
        key("rope theta 1000", "enc.rope_theta", 1000.0),
        key("pred grid 5", "pred.grid_size", 5),
        *qkv_order("enc.blk.0", 66),
        swap_rows("mask tokens exchanged", ("pred.mask_tokens",), (1, 2), 1),
        Flip("ids decoded on the crop grid", graph="rope_crop_grid"),
        Flip("kept tokens numbered anew", graph="ids_ignored"),
    ]
    return case, flips


def classifier(root: Path) -> tuple[Case, list[Flip]]:
    """Attentive head whose MLPs are 4·D wide while the encoder's are 3·D; also as f16 file."""
    keys = encoder(36, 1, 2, 108, 4, 16, "rope3d", tubelet=2, frames=4, **rope("tiled"))
    bundle = start("vjepa2_cls", "vjepa2", "video", keys)
    head(bundle, "attentive_pool", [f"Moving [something] {way}" for way in ("up", "down", "left", "right", "away")], 2)
    preprocess(bundle, IMAGENET, 18, "bilinear", None)
    recipe = Recipe("vjepa2_cls", bundle)
    recipe.encoder(norm_scale=STREAM)
    recipe.put("head.query", (1, 36), STREAM)
    for i in range(2):
        recipe.block(f"head.blk.{i}", 36, 144)
    for part in "qkv":
        recipe.linear(f"head.xattn.{part}", 36, 36, 5.0 if part == "q" else 0.1 if part == "v" else 1.6, 0.3)
    recipe.norm("head.xattn.ln_kv", 36)
    recipe.norm("head.xattn.ln2", 36)
    recipe.linear("head.xattn.ffn_up", 144, 36, 0.8, 0.4, -2.0)
    recipe.linear("head.xattn.ffn_down", 36, 144, 0.8, 0.03)
    recipe.linear("head.cls", 5, 36, 3.0, 0.3)
    case = Case(root / "vjepa2_cls", bundle, "V-JEPA 2 attentive classifier", "transformers VJEPA2ForVideoClassification")
    hf = hf_models.VJepa2(case.bundle)
    x = case.pixels("enc_native", (2, 3, 4, 16, 16))
    inputs = {"pixels": "enc_native.pixels"}
    case.test("enc_native", "encode", inputs, ("tokens", "pooled"), VIDEO, reference=hf.encode(x))
    options = {"layout": "BCTHW"}
    case.test("classify", "classify", inputs, ("logits", "pooled", "top1"), options, reference=hf.classify(x))
    case.add_f16()
    case.finish()
    flips = [
        *eps("enc"),
        key("gelu_tanh", "enc.act", "gelu_tanh"),
        key("rope interleaved", "enc.rope_freq_layout", "interleaved"),
        *qkv_order("head.blk.1", 36),
        Flip("query normalised before the cross attention", graph="query_normalised"),
        Flip("norms of the cross attention exchanged", ({"swap": ["head.xattn.ln_kv.weight", "head.xattn.ln2.weight"]},)),
    ]
    return case, flips


def action_conditioned(root: Path) -> tuple[Case, list[Flip]]:
    """One encoder head of width 44, the action-conditioned predictor, its rollout and its planner."""
    keys = encoder(44, 1, 1, 192, 4, 16, "rope3d", tubelet=2, frames=8, **rope("tiled"))
    bundle = start("vjepa2_ac", "vjepa2", "video", keys)
    more = {"out_dim": 44, "action_dim": 7, "state_dim": 7, "frame_causal": True, "grid_size": 4, "rope_freq_layout": "tiled"}
    more |= {"n_cond_tokens": 2, "cond_order": "action,state", "n_frames": 4, "rope_interpolate": False, "ln_eps": 1e-6}
    more |= {"act": "gelu_erf", "qkv_bias": True, "normalize_reps": True, "norm_reps_eps": 1e-5}
    predictor(bundle, "ac", 48, 2, 2, 96, **more)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 16, "bilinear", None)
    recipe = Recipe("vjepa2_ac", bundle)
    # Small encoder outputs and predictions, so that the epsilon of the latents' own norm counts.
    recipe.encoder(norm_scale=STREAM)
    recipe.linear("pred.embed", 48, 44, STREAM, 0.3 * STREAM)
    recipe.linear("pred.action_embed", 48, 7, 10.0 * STREAM, 0.3 * STREAM)
    recipe.linear("pred.state_embed", 48, 7, 3.0 * STREAM, 0.3 * STREAM)
    for i in range(2):
        recipe.block(f"pred.blk.{i}", 48, 96)
    recipe.norm("pred.norm", 48)
    recipe.linear("pred.proj", 44, 48, STREAM, 0.3 * STREAM)
    case = Case(root / "vjepa2_ac", bundle, "V-JEPA 2-AC: encoder, predictor, rollout, planner", "float64 graph")
    case.pixels("frame_reps", (1, 3, 3, 16, 16))
    note = "each frame repeated to one tubelet, encoded alone, then LayerNorm without weights, eps 1e-5"
    case.test("frame_reps", "ac_encode", {"pixels": "frame_reps.pixels"}, ("reps",), {"layout": "BCTHW"}, note=note)
    for t in (1, 3):
        name = f"predict_T{t}"
        inputs = {part: f"{name}.{part}" for part in ("latents", "actions", "states")}
        case.real(inputs["latents"], (2, 16 * t, 44))
        case.real(inputs["actions"], (2, t, 7), 0.3)
        case.real(inputs["states"], (2, t, 7), 0.5)
        note = "row block t is the prediction of frame t+1; no normalisation of the output"
        case.test(name, "ac_predict", inputs, ("pred",), {}, note=note)
    inputs = {part: f"rollout.{part}" for part in ("latents", "actions", "pose")}
    case.real(inputs["latents"], (2, 16, 44))
    case.real(inputs["actions"], (2, 3, 7), 0.3)
    case.real(inputs["pose"], (2, 1, 7), 0.4)
    options = {"normalize_reps": True, "eps": 1e-05}
    note = "pred[:, h] = normalised prediction after action h; poses[:, 0] is the given pose"
    case.test("rollout", "ac_rollout", inputs, ("pred", "poses"), options, note=note)
    case.real("pose.pose", (12, 7))
    case.real("pose.action", (12, 7), 0.5)
    inputs = {"pose": "pose.pose", "action": "pose.action"}
    case.test("pose", "pose_update", inputs, ("new_pose",), {})
    inputs = {part: f"cem.{part}" for part in ("noise", "context", "goal", "pose")}
    case.real("cem.noise", (3, 2, 6, 4))
    case.real("cem.context", (16, 44))
    case.real("cem.goal", (16, 44))
    case.real("cem.pose", (7,), 0.4)
    plan = {"rollout": 2, "samples": 6, "topk": 3, "cem_steps": 3, "momentum_mean": 0.15, "momentum_std": 0.15, "maxnorm": 0.3}
    plan |= {"momentum_mean_gripper": 0.15, "momentum_std_gripper": 0.15}
    note = "noise[step, h, sample, 4] replaces the normal draws, in the order step, horizon index, sample"
    case.test("cem", "ac_cem", inputs, ("actions",), plan | {"close_gripper": None}, note=note)
    case.test("cem_gripper", "ac_cem", inputs, ("actions",), plan | {"close_gripper": 1}, note=note)
    case.finish()
    flips = [
        *eps("enc", "pred"),
        key("pred gelu_tanh", "pred.act", "gelu_tanh"),
        key("pred rope interleaved", "pred.rope_freq_layout", "interleaved"),
        key("latents normalised with eps 1e-6", "pred.norm_reps_eps", 1e-6),
        key("latents not normalised", "pred.normalize_reps", False),
        *qkv_order("pred.blk.0", 48),
        swap("action and state embeddings exchanged", "pred.action_embed.weight", "pred.state_embed.weight"),
        Flip("condition rows without rotation", graph="condition_still"),
        Flip("later frames seen", graph="mask_open"),
        Flip("predictions appended without norm", graph="rollout_raw"),
    ]
    return case, flips


def build(root: Path) -> list[tuple[Case, list[Flip]]]:
    """Writes the family's cases."""
    return [masked(root), classifier(root), action_conditioned(root)]
