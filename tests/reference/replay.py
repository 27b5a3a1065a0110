"""Runs one test of a case on a bundle, and compares outputs the way the cases are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

import world
from encoder import encode, pooled, predictor_input
from layers import Model
from predictor import classify, predict_masked

Arrays = Mapping[str, np.ndarray]


def clip(array: np.ndarray) -> Tensor:
    """Stored pixels, `BCHW` or `BCTHW`, as a float64 clip `[B, C, T, H, W]`."""
    x = torch.from_numpy(array.astype(np.float64))
    return x[:, :, None] if x.dim() == 4 else x


def real(array: np.ndarray) -> Tensor:
    """A stored array as float64."""
    return torch.from_numpy(array.astype(np.float64))


def ids(array: np.ndarray) -> Tensor:
    """Stored token ids as int64."""
    return torch.from_numpy(array.astype(np.int64))


def run_test(model: Model, test: Mapping[str, Any], stored: Arrays) -> dict[str, Tensor]:
    """The outputs of `test` by role, for the roles the test lists; inputs come from `stored`."""
    given = {role: stored[name] for role, name in test["inputs"].items()}
    return RUNNERS[test["kind"]](model, given, test.get("options", {}), test["outputs"])


def _encode(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    pixels = clip(given["pixels"])
    chosen = ids(given["ctx_ids"]) if "ctx_ids" in given else None
    encoded = encode(model, pixels, chosen, options.get("pos_interp"))
    out = {"tokens": encoded.tokens, "pooled": pooled(model, encoded)}
    out |= {f"hier{k}": rows for k, rows in enumerate(encoded.hier)}
    if encoded.hier:
        out["hier_concat"] = predictor_input(model, encoded)
    if model.has("enc.proj.0.weight"):
        out["emb"] = model.mlp("enc.proj", str(model.key("enc.proj_act", "gelu_erf")), out["pooled"])
    for role in roles:
        if role.startswith("tokens_bicubic"):
            out[role] = encode(model, pixels, rule=role.removeprefix("tokens_")).tokens
        elif role == "tokens_hf_grid":
            out[role] = encode(Model(model.bundle, {"rope_crop_grid"}), pixels).tokens
    return {role: out[role] for role in roles}


def _predict_masked(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    pred, context = predict_masked(
        model,
        real(given["context"]),
        ids(given["ctx_ids"]),
        ids(given["tgt_ids"]),
        options.get("mask_index", 1),
        options.get("modality", "video"),
    )
    return {"pred": pred, "context": context} if "context" in roles else {"pred": pred}


def _classify(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    logits, vector = classify(model, encode(model, clip(given["pixels"])))
    out = {"logits": logits, "pooled": vector, "top1": logits.argmax(-1).to(torch.int32)}
    return {role: out[role] for role in roles}


def _ac_encode(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    return {"reps": world.ac_encode(model, clip(given["pixels"]))}


def _ac_predict(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    return {"pred": world.ac_predict(model, real(given["latents"]), real(given["actions"]), real(given["states"]))}


def _ac_rollout(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    pred, poses = world.ac_rollout(model, real(given["latents"]), real(given["actions"]), real(given["pose"]))
    return {"pred": pred, "poses": poses}


def _pose_update(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    return {"new_pose": world.pose_update(real(given["pose"]), real(given["action"]))}


def _ac_cem(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    noise, context, goal, pose = (real(given[role]) for role in ("noise", "context", "goal", "pose"))
    return {"actions": world.ac_cem(model, noise, context, goal, pose, dict(options))}


def _lewm_predict(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    return {"pred": world.lewm_predict(model, real(given["emb"]), real(given["actions"]))}


def _lewm_rollout(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    seeds, pred = world.lewm_rollout(model, real(given["pixels"]), real(given["actions"]))
    return {"seed_emb": seeds, "pred": pred}


def _lewm_cost(model: Model, given: Arrays, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Tensor]:
    return {"cost": world.lewm_cost(real(given["pred"]), real(given["goal"]))}


RUNNERS = {
    "encode": _encode,
    "encode_masked": _encode,
    "predict_masked": _predict_masked,
    "classify": _classify,
    "ac_encode": _ac_encode,
    "ac_predict": _ac_predict,
    "ac_rollout": _ac_rollout,
    "pose_update": _pose_update,
    "ac_cem": _ac_cem,
    "lewm_predict": _lewm_predict,
    "lewm_rollout": _lewm_rollout,
    "lewm_cost": _lewm_cost,
}


def rel_max(got: Tensor | np.ndarray, wanted: Tensor | np.ndarray) -> float:
    """Largest absolute difference over the largest absolute wanted value; infinite when shapes differ."""
    got, wanted = np.asarray(got, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    if got.shape != wanted.shape:
        return float("inf")
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())
