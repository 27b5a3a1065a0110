"""World models in float64: the action-conditioned V-JEPA 2 predictor with its planner, and LeWM."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from encoder import encode, pooled
from layers import ACTIVATIONS, Model, attention, block, layer_norm
from positions import decode_ids, rope_tables
from predictor import predictor_stack


def normalise_reps(model: Model, x: Tensor) -> Tensor:
    """The weightless LayerNorm around the AC world model's latents."""
    return layer_norm(x, model.float("pred.norm_reps_eps", 1e-5)) if bool(model.key("pred.normalize_reps", True)) else x


def ac_encode(model: Model, pixels: Tensor) -> Tensor:
    """Encodes every frame of `[B, C, T, H, W]` alone, repeated to one tubelet; `[B, T·HW, D]`, normalised."""
    tubelet = model.int("enc.tubelet_size")
    frames = [encode(model, f.repeat(1, 1, tubelet, 1, 1)).tokens for f in pixels.split(1, dim=2)]
    return normalise_reps(model, torch.cat(frames, dim=1))


def ac_predict(model: Model, latents: Tensor, actions: Tensor, states: Tensor) -> Tensor:
    """One call of the AC predictor: latents `[B, T·HW, D]`, actions and states `[B, T, A]`; row block t is frame t + 1."""
    side = model.int("pred.grid_size", model.int("enc.img_size") // model.int("enc.patch_size"))
    hw = side * side
    b, steps, _ = actions.shape
    x = model.linear("pred.embed", latents).reshape(b, steps, hw, -1)
    a = model.linear("pred.action_embed", actions)[:, :, None]
    s = model.linear("pred.state_embed", states)[:, :, None]
    x = torch.cat((a, s, x), dim=2).flatten(1, 2)
    patch = decode_ids(torch.arange(steps * hw), side, side).reshape(steps, hw, 3)
    condition = torch.zeros(steps, 2, 3, dtype=patch.dtype)
    condition[..., 0] = 0 if "condition_still" in model.deviations else torch.arange(steps)[:, None]
    positions = torch.cat((condition, patch), dim=1).flatten(0, 1)
    stack = predictor_stack(model)
    head_dim = model.int("pred.embed_dim") // stack.n_head
    layout = str(model.key("pred.rope_freq_layout", "tiled"))
    rope = rope_tables(positions, head_dim, model.float("enc.rope_theta", 10000.0), layout)
    frame = torch.arange(steps).repeat_interleave(hw + 2)
    mask = frame[:, None] >= frame[None, :]
    if "mask_open" in model.deviations:
        mask = torch.ones_like(mask)
    for i in range(stack.n_layer):
        x = block(model, f"pred.blk.{i}", stack, x, rope, mask)
    x = x.reshape(b, steps, hw + 2, -1)[:, :, 2:].flatten(1, 2)
    return model.linear("pred.proj", model.norm("pred.norm", x, stack.eps))


def rotation(angles: Tensor) -> Tensor:
    """`Rz(γ) Ry(β) Rx(α)` of angles `[.., 3]` (extrinsic xyz, radians)."""
    (ca, cb, cc), (sa, sb, sc) = torch.cos(angles).unbind(-1), torch.sin(angles).unbind(-1)
    rows = [
        torch.stack((cc * cb, cc * sb * sa - sc * ca, cc * sb * ca + sc * sa), dim=-1),
        torch.stack((sc * cb, sc * sb * sa + cc * ca, sc * sb * ca - cc * sa), dim=-1),
        torch.stack((-sb, cb * sa, cb * ca), dim=-1),
    ]
    return torch.stack(rows, dim=-2)


def pose_update(pose: Tensor, action: Tensor) -> Tensor:
    """Poses `[.., 7]` (xyz, extrinsic xyz angles, gripper) after the actions `[.., 7]`."""
    r = rotation(action[..., 3:6]) @ rotation(pose[..., 3:6])
    locked = r[..., 2, 0].abs() > 1.0 - 1e-12
    alpha = torch.where(locked, torch.atan2(-r[..., 1, 2], r[..., 1, 1]), torch.atan2(r[..., 2, 1], r[..., 2, 2]))
    beta = torch.asin(torch.clamp(-r[..., 2, 0], -1.0, 1.0))
    gamma = torch.where(locked, torch.zeros_like(alpha), torch.atan2(r[..., 1, 0], r[..., 0, 0]))
    gripper = torch.clamp(pose[..., 6:] + action[..., 6:], 0.0, 1.0)
    return torch.cat((pose[..., :3] + action[..., :3], torch.stack((alpha, beta, gamma), dim=-1), gripper), dim=-1)


def ac_rollout(model: Model, latents: Tensor, actions: Tensor, pose: Tensor) -> tuple[Tensor, Tensor]:
    """Steps the AC model from one frame `[B, HW, D]`: frames `[B, S, HW, D]` and poses `[B, S + 1, 7]`."""
    hw, poses = latents.shape[1], pose
    for h in range(actions.shape[1]):
        step = ac_predict(model, latents, actions[:, : h + 1], poses)[:, -hw:]
        step = step if "rollout_raw" in model.deviations else normalise_reps(model, step)
        latents = torch.cat((latents, step), dim=1)
        poses = torch.cat((poses, pose_update(poses[:, -1:], actions[:, h : h + 1])), dim=1)
    frames = latents[:, hw:].reshape(latents.shape[0], actions.shape[1], hw, -1)
    return frames, poses


def ac_cem(model: Model, noise: Tensor, context: Tensor, goal: Tensor, pose: Tensor, options: dict[str, Any]) -> Tensor:
    """The cross-entropy planner over the AC model; `noise [steps, rollout, samples, 4]` replaces the normal draws."""
    rollout, samples = options["rollout"], options["samples"]
    bound = options["maxnorm"]
    limit = torch.tensor([bound, bound, bound, 0.75], dtype=torch.float64)
    mean = torch.zeros(rollout, 4, dtype=torch.float64)
    std = torch.tensor([bound, bound, bound, 1.0], dtype=torch.float64).repeat(rollout, 1)
    keep_mean = torch.tensor([options["momentum_mean"]] * 3 + [options["momentum_mean_gripper"]], dtype=torch.float64)
    keep_std = torch.tensor([options["momentum_std"]] * 3 + [options["momentum_std_gripper"]], dtype=torch.float64)
    for draws in noise:
        drawn = torch.clamp(draws * std[:, None] + mean[:, None], -limit, limit)
        actions = torch.zeros(samples, rollout, 7, dtype=torch.float64)
        actions[..., :3] = drawn[..., :3].transpose(0, 1)
        actions[..., 6] = drawn[..., 3].T
        if options.get("close_gripper") is not None:
            actions[:, options["close_gripper"] :, 6] = 1.0
        start = pose.expand(samples, 1, 7)
        frames, _ = ac_rollout(model, context.expand(samples, -1, -1), actions, start)
        cost = (frames[:, -1] - goal).abs().mean((1, 2))
        kept = torch.cat((actions[..., :3], actions[..., 6:]), dim=-1)[cost.argsort(stable=True)[: options["topk"]]]
        mean = (1.0 - keep_mean) * kept.mean(0) + keep_mean * mean
        std = (1.0 - keep_std) * kept.std(0) + keep_std * std
    plan = torch.zeros(rollout, 7, dtype=torch.float64)
    plan[:, :3] = mean[:, :3]
    plan[:, 6] = torch.where(mean[:, 3].abs() < 0.25, torch.zeros_like(mean[:, 3]), mean[:, 3])
    return plan


def lewm_state(model: Model, pixels: Tensor) -> Tensor:
    """LeWM's state `[B, E]` of pictures `[B, C, 1, H, W]`: the projector on the CLS row."""
    return model.mlp("enc.proj", str(model.key("enc.proj_act", "gelu_erf")), pooled(model, encode(model, pixels)))


def lewm_predict(model: Model, emb: Tensor, actions: Tensor) -> Tensor:
    """LeWM's predictor on a window: states `[B, T, E]` and actions `[B, T, A]`; row t is the state after frame t."""
    c = model.mlp("pred.action_embed", str(model.key("pred.action_act", "silu")), actions)
    c = c * torch.sigmoid(c)
    steps, stack = emb.shape[1], predictor_stack(model)
    adaln_eps = model.float("pred.adaln_eps", 1e-6)
    mask = torch.ones(steps, steps, dtype=torch.bool)
    if "mask_open" not in model.deviations:
        mask = mask.tril()
    x = emb + model.tensor("pred.pos_embed")[:steps]
    for i in range(stack.n_layer):
        p = f"pred.blk.{i}"
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = model.linear(f"{p}.adaln", c).chunk(6, dim=-1)
        h = model.norm(f"{p}.ln1", layer_norm(x, adaln_eps) * (1.0 + scale_a) + shift_a, stack.eps)
        q, k, v = model.linear(f"{p}.attn_qkv", h).chunk(3, dim=-1)
        x = x + gate_a * model.linear(f"{p}.attn_out", attention(q, k, v, stack.n_head, mask=mask))
        h = model.norm(f"{p}.ln2", layer_norm(x, adaln_eps) * (1.0 + scale_m) + shift_m, stack.eps)
        x = x + gate_m * model.linear(f"{p}.ffn_down", ACTIVATIONS[stack.act](model.linear(f"{p}.ffn_up", h)))
    x = model.norm("pred.norm", x, stack.eps)
    return model.mlp("pred.proj", str(model.key("pred.proj_act", "gelu_erf")), x)


def lewm_rollout(model: Model, pixels: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Seeds `[B, H, C, h, w]` and actions `[B, H - 1 + S, A]` to the seed states `[B, H, E]` and predictions `[B, S, E]`."""
    seeds = torch.stack([lewm_state(model, f[:, :, None]) for f in pixels.unbind(1)], dim=1)
    window, states = model.int("pred.n_frames"), seeds
    for _ in range(actions.shape[1] - seeds.shape[1] + 1):
        n = states.shape[1]
        low = max(n - window, 0)
        step = lewm_predict(model, states[:, low:], actions[:, low:n])[:, -1:]
        states = torch.cat((states, step), dim=1)
    return seeds, states[:, seeds.shape[1] :]


def lewm_cost(pred: Tensor, goal: Tensor) -> Tensor:
    """Squared distance `[B]` of the last predicted state to the goal."""
    return ((pred[:, -1] - goal) ** 2).sum(-1)
