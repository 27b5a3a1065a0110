"""LeWM: a ViT with a projector on CLS, and an adaLN predictor of the next state."""

from __future__ import annotations

from pathlib import Path

import hf_models
from bundle_keys import IMAGENET, encoder, head, predictor, preprocess, start
from case_writer import Case
from flips import Flip, key, option, qkv_order, swap_rows
from layers import Model
from weights import STREAM, Recipe, normal_like

IMAGE = {"layout": "BCHW", "pooling": "cls"}


def build(root: Path) -> list[tuple[Case, list[Flip]]]:
    """Writes the family's case: four predictor heads of width 12 in a width of 32, states small enough for every epsilon."""
    keys = encoder(32, 2, 2, 64, 4, 16, "learned", cls_token=True, ln_eps=1e-12, proj_act="gelu_erf")
    bundle = start("lewm", "lewm", "image", keys)
    more = {"head_dim": 12, "n_frames": 3, "action_dim": 4, "state_dim": 0, "frame_causal": True, "ln_eps": 1e-5}
    more |= {"adaln_eps": 1e-6, "act": "gelu_erf", "qkv_bias": False, "action_act": "silu", "proj_act": "gelu_erf"}
    predictor(bundle, "lewm", 32, 2, 4, 80, **more)
    head(bundle, "none")
    preprocess(bundle, IMAGENET, 16, "bilinear", "squash")
    recipe = Recipe("lewm", bundle)
    recipe.encoder(table=normal_like("lewm/table", (17, 32)))
    recipe.linear("enc.proj.0", 56, 32, 0.8, 0.4, -2.0)
    recipe.linear("enc.proj.2", 32, 56, 8.0 * STREAM, 0.3 * STREAM)
    recipe.put("pred.pos_embed", (3, 32), STREAM)
    for i in range(2):
        recipe.linear(f"pred.blk.{i}.adaln", 192, 32, 0.8, 0.3)
        recipe.block(f"pred.blk.{i}", 32, 80, inner=48, qkv_bias=False)
    recipe.norm("pred.norm", 32)
    recipe.linear("pred.action_embed.0", 128, 4, 1.0, 0.3)
    recipe.linear("pred.action_embed.2", 32, 128, 3.0, 0.3)
    recipe.linear("pred.proj.0", 56, 32, 0.8, 0.4, -2.0)
    recipe.linear("pred.proj.2", 32, 56, 8.0 * STREAM, 0.3 * STREAM)
    # The modulated rows keep a small deviation, so that the affine norms' epsilon counts too.
    for i in range(2):
        for part in ("weight", "bias"):
            rows = bundle.tensors[f"pred.blk.{i}.adaln.{part}"]
            for first in (0, 32, 96, 128):
                rows[first : first + 32] *= 0.02
            if part == "bias":
                rows[32:64] -= 0.96
                rows[128:160] -= 0.96
    reference = "transformers ViTModel (encoder); float64 graph"
    case = Case(root / "lewm", bundle, "LeWM: ViT encoder, projector, adaLN predictor", reference)
    model, run = Model(case.bundle), hf_models.vit(case.bundle)
    for name, shape in (("enc_native", (2, 3, 16, 16)), ("enc_24x20", (1, 3, 24, 20)), ("enc_12x12", (1, 3, 12, 12))):
        x = case.pixels(name, shape)
        answer = run(x)
        answer["emb"] = model.mlp("enc.proj", "gelu_erf", answer["pooled"])
        options = IMAGE if name == "enc_native" else IMAGE | {"pos_interp": "bicubic_size"}
        note = "emb = enc.proj MLP on the CLS token"
        roles = ("tokens", "pooled", "emb")
        case.test(name, "encode", {"pixels": f"{name}.pixels"}, roles, options, reference=answer, note=note)
    for t in (1, 2, 3):
        inputs = {"emb": f"predict_T{t}.emb", "actions": f"predict_T{t}.actions"}
        case.real(inputs["emb"], (2, t, 32), STREAM)
        case.real(inputs["actions"], (2, t, 4))
        case.test(f"predict_T{t}", "lewm_predict", inputs, ("pred",), {})
    case.real("rollout.pixels", (1, 2, 3, 16, 16))
    case.real("rollout.actions", (1, 6, 4))
    inputs = {"pixels": "rollout.pixels", "actions": "rollout.actions"}
    note = (
        "actions[j] is the action leaving frame j (seed frames included); step s predicts frame n_seed+s from the last n_frames "
        "frames and their actions; positions are those of the window, starting at row 0"
    )
    options = {"layout": "BTCHW", "n_seed": 2, "n_steps": 5}
    case.test("rollout", "lewm_rollout", inputs, ("seed_emb", "pred"), options, note=note)
    case.real("rollout_cost.goal", (1, 32), 0.1)
    inputs = {"pred": "rollout.pred", "goal": "rollout_cost.goal"}
    note = "squared error to the goal embedding, summed over the embedding, last step only"
    case.test("rollout_cost", "lewm_cost", inputs, ("cost",), {}, note=note)
    case.finish()
    flips = [
        key("enc eps 1e-6", "enc.ln_eps", 1e-6),
        key("pred eps 1e-6", "pred.ln_eps", 1e-6),
        key("adaln eps 1e-5", "pred.adaln_eps", 1e-5),
        key("adaln eps 1e-12", "pred.adaln_eps", 1e-12),
        key("enc gelu_tanh", "enc.act", "gelu_tanh"),
        key("pred gelu_tanh", "pred.act", "gelu_tanh"),
        key("projector gelu_tanh", "enc.proj_act", "gelu_tanh"),
        key("predictor's projector gelu_tanh", "pred.proj_act", "gelu_tanh"),
        key("action gelu_erf", "pred.action_act", "gelu_erf"),
        *qkv_order("enc.blk.0", 32),
        swap_rows("pred.blk.0 qkv as kqv", ("pred.blk.0.attn_qkv.weight",), (0, 48), 48),
        *[
            swap_rows(f"adaln {name}", ("pred.blk.0.adaln.weight", "pred.blk.0.adaln.bias"), at, 32)
            for name, at in (("shift and scale exchanged", (0, 32)), ("gates exchanged", (64, 160)))
        ],
        Flip("position row of CLS taken for the last patch", ({"roll_rows": "enc.pos_embed", "by": -1},)),
        Flip("window positions moved by one", ({"roll_rows": "pred.pos_embed", "by": -1},)),
        option("resized with offset", "pos_interp", "bicubic_offset01"),
        Flip("later frames seen", graph="mask_open"),
    ]
    return [(case, flips)]
