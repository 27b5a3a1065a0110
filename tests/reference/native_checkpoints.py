"""Writes tiny checkpoints in every layout the converter knows, with the bundles they become: `native_checkpoints.py [--out DIR]`.

Each case is a folder with `src/` (what a converter gets), `model-f32.gguf` (what it has to write) and `case.json` (path and
hints). Weights are a function of their names. The mapping is written out here a second time, from the bundle's names to those
of the checkpoint, so that nothing is shared with the converter under test.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

import gguf_bundle
from bundle_keys import HALF, IMAGENET, encoder, head, predictor, preprocess, rope
from gguf_bundle import Bundle
from weights import normal_like

Weights = dict[str, np.ndarray]

TIMM = {"ln1": "norm1", "attn_qkv": "attn.qkv", "attn_out": "attn.proj", "ln2": "norm2", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"}
HUB_VIT = {
    "ln1": "layernorm_before",
    "attn_qkv": [f"attention.attention.{part}" for part in ("query", "key", "value")],
    "attn_out": "attention.output.dense",
    "ln2": "layernorm_after",
    "ffn_up": "intermediate.dense",
    "ffn_down": "output.dense",
}
MEMORY_VIT = HUB_VIT | {
    "attn_qkv": [f"attention.{part}_proj" for part in "qkv"],
    "attn_out": "attention.o_proj",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}
DINOV2 = HUB_VIT | {"ln1": "norm1", "ln2": "norm2", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"}
HUB_VJEPA2 = TIMM | {"attn_qkv": [f"attention.{part}" for part in ("query", "key", "value")], "attn_out": "attention.proj"}
POOLER = {
    "ln1": "layer_norm1",
    "attn_qkv": [f"self_attn.{part}_proj" for part in "qkv"],
    "attn_out": "self_attn.out_proj",
    "ln2": "layer_norm2",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}


class Checkpoint:
    """A bundle and a checkpoint that grow together."""

    def __init__(self, name: str, family: str, modality: str, enc: dict) -> None:
        self.name = name
        self.source: Weights = {}
        keys = {"jepa.schema_version": 1, "jepa.family": family, "jepa.modality": modality}
        self.bundle = Bundle(keys | {f"jepa.enc.{key}": value for key, value in enc.items()})

    def enc(self, key: str) -> int:
        """An encoder key."""
        return self.bundle.keys[f"jepa.enc.{key}"]

    def put(self, name: str, shape: tuple[int, ...], source: str, stored: tuple[int, ...] | None = None) -> None:
        """One tensor, in the checkpoint under `source` and in another shape."""
        values = normal_like(f"{self.name}/{name}", shape, 0.5)
        self.bundle.tensors[name] = values
        self.source[source] = values.reshape(stored or shape)

    def layer(self, name: str, out: int, inner: int, source: str | list[str], conv: tuple[int, ...] | None = None) -> None:
        """Weight and bias; of several sources each has its share of the rows. `inner` 0 makes a norm."""
        shape = (out, inner) if inner else (out,)
        for part, size in (("weight", shape), ("bias", (out,))):
            if isinstance(source, str):
                stored = (out, *conv) if conv and part == "weight" else None
                self.put(f"{name}.{part}", size, f"{source}.{part}", stored)
            else:
                values = normal_like(f"{self.name}/{name}.{part}", size, 0.5)
                self.bundle.tensors[f"{name}.{part}"] = values
                for target, share in zip(source, np.split(values, len(source)), strict=True):
                    self.source[f"{target}.{part}"] = np.ascontiguousarray(share)

    def blocks(self, name: str, count: int, dim: int, ffn: int, source: str, names: dict) -> None:
        """A stack of blocks."""
        sizes = {"ln1": (dim, 0), "attn_qkv": (3 * dim, dim), "attn_out": (dim, dim), "ln2": (dim, 0), "ffn_up": (ffn, dim), "ffn_down": (dim, ffn)}
        for i in range(count):
            for part, (out, inner) in sizes.items():
                target = names[part]
                full = [f"{source}.{i}.{t}" for t in target] if isinstance(target, list) else f"{source}.{i}.{target}"
                self.layer(f"{name}.blk.{i}.{part}", out, inner, full)

    def encoder(self, patches: str, blocks: str, names: dict, norm: str | None, *, clip: bool = False) -> None:
        """Patches, blocks and the last norm."""
        dim, patch, chans = self.enc("embed_dim"), self.enc("patch_size"), self.enc("in_chans")
        frames = (self.enc("tubelet_size"),) if clip else ()
        conv = (chans, *frames, patch, patch)
        self.layer("enc.patch_embed", dim, int(np.prod(conv)), patches, conv)
        self.blocks("enc", self.enc("n_layer"), dim, self.enc("ffn_dim"), blocks, names)
        if norm:
            self.layer("enc.norm", dim, 0, norm)

    def junk(self, *names: str) -> None:
        """Tensors that a converter leaves out."""
        for name in names:
            self.source[name] = normal_like(f"{self.name}/{name}", (3,))

    def write(self, root: Path, file: str, files: dict[str, dict], hints: dict | None = None) -> None:
        """The folder of the case."""
        folder = root / self.name
        (folder / "src").mkdir(parents=True)
        for name, content in files.items():
            (folder / "src" / name).write_text(json.dumps(content, indent=1) + "\n")
        path = folder / "src" / file
        if file.endswith(".safetensors"):
            save_file(self.source, path, metadata={"format": "pt"})
        else:
            torch.save(nested({name: torch.from_numpy(a.copy()) for name, a in self.source.items()}, hints is None), path)
        gguf_bundle.write(self.bundle, folder / "model-f32.gguf")
        source = {"path": "src" if files else f"src/{file}", "hints": hints or {}}
        (folder / "case.json").write_text(json.dumps({"source": source, "models": {"f32": "model-f32.gguf"}}, indent=1) + "\n")


def nested(flat: dict[str, torch.Tensor], plain: bool) -> dict:
    """Meta's training checkpoint: encoder and predictor as dictionaries of their own, beside plain values."""
    if plain:
        return flat
    tree: dict = {"opt": {"state": {0: {"exp_avg": torch.zeros(3)}}}, "scaler": None, "epoch": 3, "lr": 1e-4}
    for name, tensor in flat.items():
        part, rest = name.split("/", 1)
        tree.setdefault(part, {})[rest] = tensor
    return tree


def processor(short: int, crop: int, resample: int, *, squash: bool = False, half: bool = False) -> dict:
    """A processor's file."""
    mean, std = HALF if half else IMAGENET
    size = {"height": crop, "width": crop} if squash else {"shortest_edge": short}
    return {
        "do_resize": True, "do_rescale": True, "do_normalize": True, "do_center_crop": not squash, "size": size,
        "crop_size": None if squash else {"height": crop, "width": crop}, "resample": resample,
        "rescale_factor": 1 / 255, "image_mean": mean, "image_std": std,
    }  # fmt: skip


def hub_config(c: Checkpoint, model_type: str, **more: object) -> dict:
    """`config.json` of an image encoder of transformers."""
    return {
        "model_type": model_type, "hidden_size": c.enc("embed_dim"), "num_hidden_layers": c.enc("n_layer"),
        "num_attention_heads": c.enc("n_head"), "image_size": c.enc("img_size"), "patch_size": c.enc("patch_size"),
        "num_channels": 3, "layer_norm_eps": 1e-6, "hidden_act": "gelu",
    } | more  # fmt: skip


def ijepa(root: Path) -> None:
    """I-JEPA: hub names with a classifier, the names in memory, Meta's file."""
    labels = ["cat", "dog", "owl"]
    for name, blocks, names, prefix in (
        ("ijepa_hub", "encoder.layer", HUB_VIT, "ijepa."),
        ("ijepa_memory", "layers", MEMORY_VIT, ""),
    ):
        c = Checkpoint(name, "ijepa", "image", encoder(12, 2, 2, 20, 2, 6, "sincos2d"))
        c.encoder(f"{prefix}embeddings.patch_embeddings.projection", f"{prefix}{blocks}", names, f"{prefix}layernorm")
        c.put("enc.pos_embed", (9, 12), f"{prefix}embeddings.position_embeddings", (1, 9, 12))
        config = hub_config(c, "ijepa", intermediate_size=20)
        if prefix:
            c.layer("head.cls", 3, 12, "classifier")
            config["id2label"] = {str(i): label for i, label in enumerate(labels)}
            config["jepa"] = {"name": "tiny", "license": "mit", "source_url": "https://example.invalid/tiny"}
            c.bundle.keys |= {"general.name": "tiny", "general.license": "mit", "general.source_url": "https://example.invalid/tiny"}
        c.junk(f"{prefix}pooler.dense.weight")
        head(c.bundle, "linear_cls" if prefix else "none", labels if prefix else None)
        preprocess(c.bundle, HALF, 6, "bilinear", "squash")
        files = {"config.json": config, "preprocessor_config.json": processor(6, 6, 2, squash=True, half=True)}
        c.write(root, "model.safetensors", files)

    c = Checkpoint("ijepa_meta", "ijepa", "image", encoder(12, 2, 3, 20, 2, 6, "sincos2d"))
    c.encoder("target_encoder/module.patch_embed.proj", "target_encoder/module.blocks", TIMM, "target_encoder/module.norm")
    c.put("enc.pos_embed", (9, 12), "target_encoder/module.pos_embed", (1, 9, 12))
    p = "predictor/module."
    meta_predictor(c, p, 8, 1, 2, 12)
    c.put("pred.mask_tokens", (1, 8), f"{p}mask_token", (1, 1, 8))
    c.put("pred.pos_embed", (9, 8), f"{p}predictor_pos_embed", (1, 9, 8))
    c.junk("encoder/module.norm.weight")
    predictor(c.bundle, "masked", 8, 1, 2, 12, n_mask_tokens=1, out_dim=12)
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 6, "bilinear", "squash")
    c.write(root, "ijepa.pth.tar", {}, {"enc_n_head": 3, "pred_n_head": 2})


def meta_predictor(c: Checkpoint, p: str, dim: int, layers: int, out: int, ffn: int, *, inner: int | None = None) -> None:
    """What all of Meta's predictors have."""
    c.layer("pred.embed", dim, inner or c.enc("embed_dim"), f"{p}predictor_embed")
    c.blocks("pred", layers, dim, ffn, f"{p}predictor_blocks", TIMM)
    c.layer("pred.norm", dim, 0, f"{p}predictor_norm")
    c.layer("pred.proj", c.enc("embed_dim"), dim, f"{p}predictor_proj")


def hfvit(root: Path) -> None:
    """lite_ssl with a head, Dinov2 with registers, ViT."""
    c = Checkpoint("hfvit_lite_ssl", "hfvit", "image", encoder(12, 2, 2, 24, 2, 6, "learned") | {"cls_token": True, "layer_scale": True})
    c.encoder("backbone.patch_embed.proj", "backbone.blocks", TIMM, "backbone.norm")
    c.put("enc.pos_embed", (10, 12), "backbone.pos_embed", (1, 10, 12))
    c.put("enc.cls_token", (12,), "backbone.cls_token", (1, 1, 12))
    for i in range(2):
        for part in ("ls1", "ls2"):
            c.put(f"enc.blk.{i}.{part}", (12,), f"backbone.blocks.{i}.{part}.gamma")
    c.junk("backbone.cva_module_proj.mlp.0.weight", "backbone.mask_token")
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 7, "bicubic", "shortest_edge")
    config = {"model_type": "vitv2", "embed_dim": 12, "depth": 2, "num_heads": 2, "mlp_ratio": 2, "patch_size": 2, "img_size": 6,
              "num_register_tokens": 0, "init_values": 0.1}  # fmt: skip
    c.write(root, "model.safetensors", {"config.json": config, "preprocessor_config.json": processor(7, 6, 3)})

    enc = encoder(12, 1, 2, 24, 2, 6, "learned") | {"cls_token": True, "n_registers": 2, "layer_scale": True, "pos_interp": "antialias"}
    c = Checkpoint("hfvit_dinov2", "hfvit", "image", enc)
    c.encoder("embeddings.patch_embeddings.projection", "encoder.layer", DINOV2, "layernorm")
    c.put("enc.pos_embed", (10, 12), "embeddings.position_embeddings", (1, 10, 12))
    c.put("enc.cls_token", (12,), "embeddings.cls_token", (1, 1, 12))
    c.put("enc.reg_tokens", (2, 12), "embeddings.register_tokens", (1, 2, 12))
    for part, target in (("ls1", "layer_scale1"), ("ls2", "layer_scale2")):
        c.put(f"enc.blk.0.{part}", (12,), f"encoder.layer.0.{target}.lambda1")
    c.junk("embeddings.mask_token")
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 7, "bicubic", "shortest_edge")
    config = hub_config(c, "dinov2_with_registers", mlp_ratio=2, num_register_tokens=2, use_swiglu_ffn=False)
    c.write(root, "model.safetensors", {"config.json": config, "preprocessor_config.json": processor(7, 6, 3)})

    enc = encoder(12, 1, 2, 20, 2, 6, "learned") | {"cls_token": True, "pos_interp": "size"}
    c = Checkpoint("hfvit_vit", "hfvit", "image", enc)
    c.encoder("vit.embeddings.patch_embeddings.projection", "vit.encoder.layer", HUB_VIT, "vit.layernorm")
    c.put("enc.pos_embed", (10, 12), "vit.embeddings.position_embeddings", (1, 10, 12))
    c.put("enc.cls_token", (12,), "vit.embeddings.cls_token", (1, 1, 12))
    c.layer("head.cls", 2, 12, "classifier")
    head(c.bundle, "linear_cls", ["no", "yes"])
    preprocess(c.bundle, HALF, 6, "bilinear", "squash")
    config = hub_config(c, "vit", intermediate_size=20, id2label={"0": "no", "1": "yes"})
    c.write(root, "model.safetensors", {"config.json": config, "preprocessor_config.json": processor(6, 6, 2, squash=True, half=True)})


def levjepa(root: Path) -> None:
    """LeVJEPA."""
    flags = {"modality_embed": False, "image_patch_embed": False, "attn_mode": "block_causal"}
    enc = encoder(12, 2, 2, 24, 2, 6, "rope3d", frames=3, **rope("tiled"), **flags) | {"cls_token": True}
    c = Checkpoint("levjepa", "levjepa", "video", enc)
    c.encoder("encoder.patch_embed.proj", "encoder.blocks", TIMM, "encoder.norm", clip=True)
    c.put("enc.cls_token", (12,), "encoder.cls_token", (1, 1, 12))
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 6, "bicubic", "shortest_edge")
    config = {"model_type": "levjepa", "img_size": 6, "patch_size": 2, "num_frames": 3, "tubelet_size": 1, "in_chans": 3, "embed_dim": 12,
              "depth": 2, "num_heads": 2, "mlp_ratio": 2, "qkv_bias": True, "use_rope": True, "attn_mode": "block_causal"}  # fmt: skip
    c.write(root, "model.safetensors", {"config.json": config})


def video(root: Path) -> None:
    """V-JEPA 1, 2 and 2-AC from Meta's files, V-JEPA 2 from the hub with its classifier."""
    e, p = "target_encoder/module.backbone.", "predictor/module.backbone."
    c = Checkpoint("vjepa_meta", "vjepa", "video", encoder(12, 2, 2, 24, 2, 6, "sincos3d", tubelet=2, frames=4))
    c.encoder(f"{e}patch_embed.proj", f"{e}blocks", TIMM, f"{e}norm", clip=True)
    c.put("enc.pos_embed", (18, 12), f"{e}pos_embed", (1, 18, 12))
    meta_predictor(c, p, 8, 1, 2, 12)
    c.put("pred.pos_embed", (18, 8), f"{p}predictor_pos_embed", (1, 18, 8))
    mask_tokens(c, p, 2)
    predictor(c.bundle, "masked", 8, 1, 2, 12, n_mask_tokens=2, out_dim=12)
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 6 * 256 // 224, "bilinear", None)
    c.write(root, "vjepa.pth.tar", {}, {"n_frames": 4, "enc_n_head": 2, "pred_n_head": 2})

    flags = rope("tiled") | {"modality_embed": False, "image_patch_embed": False}
    hints = {"img_size": 6, "n_frames": 4, "enc_n_head": 2, "pred_n_head": 2}
    c = Checkpoint("vjepa2_meta", "vjepa2", "video", encoder(12, 2, 2, 24, 2, 6, "rope3d", tubelet=2, frames=4, **flags))
    c.encoder(f"{e}patch_embed.proj", f"{e}blocks", TIMM, f"{e}norm", clip=True)
    meta_predictor(c, p, 8, 1, 2, 12)
    mask_tokens(c, p, 3)
    c.source[f"{e}pos_embed"] = np.zeros((1, 18, 12), np.float32)
    c.source[f"{p}predictor_pos_embed"] = np.zeros((1, 18, 8), np.float32)
    predictor(c.bundle, "masked", 8, 1, 2, 12, n_mask_tokens=3, out_dim=12, rope_freq_layout="tiled")
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 6 * 256 // 224, "bilinear", None)
    c.write(root, "vjepa2.pt", {}, hints)

    c = Checkpoint("vjepa2_ac", "vjepa2", "video", encoder(12, 1, 2, 24, 2, 6, "rope3d", tubelet=2, frames=4, **flags))
    e = "encoder/module.backbone."
    c.encoder(f"{e}patch_embed.proj", f"{e}blocks", TIMM, f"{e}norm", clip=True)
    meta_predictor(c, p, 8, 1, 2, 12)
    c.layer("pred.action_embed", 8, 7, f"{p}action_encoder")
    c.layer("pred.state_embed", 8, 7, f"{p}state_encoder")
    c.junk(f"{p}extrinsics_encoder.weight", "target_encoder/module.backbone.norm.weight")
    predictor(c.bundle, "ac", 8, 1, 2, 12, out_dim=12, action_dim=7, state_dim=7, frame_causal=True, grid_size=3, rope_freq_layout="tiled",
              n_cond_tokens=2, cond_order="action,state", n_frames=2, rope_interpolate=False, ln_eps=1e-6, act="gelu_erf", qkv_bias=True,
              normalize_reps=True, norm_reps_eps=1e-5)  # fmt: skip
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 6, "bilinear", None)
    c.write(root, "vjepa2_ac.pt", {}, hints)

    c = Checkpoint("vjepa2_hub", "vjepa2", "video", encoder(12, 1, 2, 31, 2, 6, "rope3d", tubelet=2, frames=4, **flags))
    v = "vjepa2."
    c.encoder(f"{v}encoder.embeddings.patch_embeddings.proj", f"{v}encoder.layer", HUB_VJEPA2, f"{v}encoder.layernorm", clip=True)
    c.layer("pred.embed", 8, 12, f"{v}predictor.embeddings.predictor_embeddings")
    c.blocks("pred", 1, 8, 16, f"{v}predictor.layer", HUB_VJEPA2)
    c.put("pred.mask_tokens", (2, 8), f"{v}predictor.embeddings.mask_tokens", (2, 1, 1, 8))
    c.layer("pred.norm", 8, 0, f"{v}predictor.layernorm")
    c.layer("pred.proj", 12, 8, f"{v}predictor.proj")
    c.put("head.query", (1, 12), "pooler.query_tokens", (1, 1, 12))
    c.blocks("head", 1, 12, 48, "pooler.self_attention_layers", POOLER)
    x = "pooler.cross_attention_layer."
    c.layer("head.xattn.ln_kv", 12, 0, f"{x}layer_norm1")
    for part in "qkv":
        c.layer(f"head.xattn.{part}", 12, 12, f"{x}cross_attn.{part}_proj")
    c.layer("head.xattn.ln2", 12, 0, f"{x}layer_norm2")
    c.layer("head.xattn.ffn_up", 48, 12, f"{x}mlp.fc1")
    c.layer("head.xattn.ffn_down", 12, 48, f"{x}mlp.fc2")
    c.layer("head.cls", 2, 12, "classifier")
    predictor(c.bundle, "masked", 8, 1, 2, 16, n_mask_tokens=2, out_dim=12, rope_freq_layout="tiled")
    head(c.bundle, "attentive_pool", ["up", "down"], 1)
    preprocess(c.bundle, IMAGENET, 7, "bilinear", None)
    config = {"model_type": "vjepa2", "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_ratio": 2.6, "patch_size": 2,
              "tubelet_size": 2, "crop_size": 6, "frames_per_clip": 4, "in_chans": 3, "layer_norm_eps": 1e-6, "hidden_act": "gelu",
              "pred_hidden_size": 8, "pred_num_hidden_layers": 1, "pred_num_attention_heads": 2, "pred_mlp_ratio": 2.0,
              "pred_num_mask_tokens": 2, "num_pooler_layers": 1, "id2label": {"0": "up", "1": "down"}}  # fmt: skip
    c.write(root, "model.safetensors", {"config.json": config, "video_preprocessor_config.json": processor(7, 6, 2)})


def mask_tokens(c: Checkpoint, p: str, count: int) -> None:
    """Mask tokens, one tensor each."""
    tokens = normal_like(f"{c.name}/mask_tokens", (count, 8), 0.5)
    c.bundle.tensors["pred.mask_tokens"] = tokens
    for i, token in enumerate(tokens):
        c.source[f"{p}mask_tokens.{i}"] = token.reshape(1, 1, 8).copy()


def vjepa2_1(root: Path) -> None:
    """V-JEPA 2.1 with several hierarchical inputs, at a depth that no table has."""
    e, p = "ema_encoder/module.backbone.", "predictor/module.backbone."
    enc = encoder(12, 3, 2, 16, 4, 12, "rope3d", tubelet=2, frames=4, **rope("interleaved", rope_ref_grid=64)) | {"rope_interpolate": True}
    c = Checkpoint("vjepa2_1", "vjepa2_1", "image+video", enc | {"modality_embed": True, "image_patch_embed": True, "hier_layers": [0, 2]})
    c.encoder(f"{e}patch_embed.proj", f"{e}blocks", TIMM, None, clip=True)
    c.layer("enc.patch_embed_img", 12, 48, f"{e}patch_embed_img.proj", (3, 1, 4, 4))
    for kind, target in (("img", "img_mod_embed"), ("video", "video_mod_embed")):
        c.put(f"enc.mod_embed_{kind}", (12,), f"{e}{target}", (1, 1, 12))
        c.put(f"pred.mod_embed_{kind}", (8,), f"{p}{target}", (1, 1, 8))
    for i in range(2):
        c.layer(f"enc.hier_norm.{i}", 12, 0, f"{e}norms_block.{i}")
    for part in ("weight", "bias"):
        c.bundle.tensors[f"enc.norm.{part}"] = c.bundle.tensors[f"enc.hier_norm.1.{part}"]
    c.layer("pred.embed.0", 12, 24, f"{p}predictor_embed.0")
    c.layer("pred.embed.2", 8, 12, f"{p}predictor_embed.2")
    c.blocks("pred", 1, 8, 12, f"{p}predictor_blocks", TIMM)
    mask_tokens(c, p, 2)
    c.layer("pred.norm", 8, 0, f"{p}predictor_norm")
    c.layer("pred.proj", 24, 8, f"{p}predictor_proj")
    c.layer("pred.proj_context", 24, 8, f"{p}predictor_proj_context")
    predictor(c.bundle, "masked", 8, 1, 2, 12, n_mask_tokens=2, out_dim=12, n_hier_in=2, modality_embed=True, context_proj=True,
              rope_interpolate=False, grid_size=3, rope_freq_layout="interleaved")  # fmt: skip
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 12 * 256 // 224, "bilinear", None)
    c.write(root, "vjepa2_1.pt", {}, {"img_size": 12, "n_frames": 4, "enc_n_head": 2, "pred_n_head": 2, "hier_layers": "0,2"})


def lewm(root: Path) -> None:
    """LeWM: folds are computed here in float64, and rounded once."""
    enc = encoder(12, 1, 2, 20, 2, 6, "learned") | {"cls_token": True, "ln_eps": 1e-12, "proj_act": "gelu_erf"}
    c = Checkpoint("lewm", "lewm", "image", enc)
    c.encoder("encoder.embeddings.patch_embeddings.projection", "encoder.encoder.layer", HUB_VIT, "encoder.layernorm")
    c.put("enc.pos_embed", (10, 12), "encoder.embeddings.position_embeddings", (1, 10, 12))
    c.put("enc.cls_token", (12,), "encoder.embeddings.cls_token", (1, 1, 12))
    c.put("pred.pos_embed", (3, 12), "predictor.pos_embedding", (1, 3, 12))
    for i in range(2):
        s, b = f"predictor.transformer.layers.{i}.", f"pred.blk.{i}."
        c.layer(f"{b}adaln", 72, 12, f"{s}adaLN_modulation.1")
        c.layer(f"{b}ln1", 12, 0, f"{s}attn.norm")
        c.put(f"{b}attn_qkv.weight", (24, 12), f"{s}attn.to_qkv.weight")
        c.layer(f"{b}attn_out", 12, 8, f"{s}attn.to_out.0")
        c.layer(f"{b}ln2", 12, 0, f"{s}mlp.net.0")
        c.layer(f"{b}ffn_up", 16, 12, f"{s}mlp.net.1")
        c.layer(f"{b}ffn_down", 12, 16, f"{s}mlp.net.4")
    c.layer("pred.norm", 12, 0, "predictor.transformer.norm")
    for target, source in (("enc.proj", "projector"), ("pred.proj", "pred_proj")):
        w = {part: normal_like(f"lewm/{source}/{part}", shape, 0.5) for part, shape in
             (("net.0.weight", (14, 12)), ("net.0.bias", (14,)), ("net.1.weight", (14,)), ("net.1.bias", (14,)), ("net.1.running_mean", (14,)),
              ("net.1.running_var", (14,)))}  # fmt: skip
        w["net.1.running_var"] = np.abs(w["net.1.running_var"]) + 0.1
        c.source |= {f"{source}.{part}": array for part, array in w.items()}
        d = {part: array.astype(np.float64) for part, array in w.items()}
        scale = d["net.1.weight"] / np.sqrt(d["net.1.running_var"] + 1e-5)
        c.bundle.tensors[f"{target}.0.weight"] = (scale[:, None] * d["net.0.weight"]).astype(np.float32)
        c.bundle.tensors[f"{target}.0.bias"] = ((d["net.0.bias"] - d["net.1.running_mean"]) * scale + d["net.1.bias"]).astype(np.float32)
        c.layer(f"{target}.2", 12, 14, f"{source}.net.3")
        c.source[f"{source}.net.1.num_batches_tracked"] = np.array(7, np.int64)
    w = {part: normal_like(f"lewm/action/{part}", shape, 0.5) for part, shape in
         (("patch_embed.weight", (5, 4, 1)), ("patch_embed.bias", (5,)), ("embed.0.weight", (48, 5)), ("embed.0.bias", (48,)))}  # fmt: skip
    c.source |= {f"action_encoder.{part}": array for part, array in w.items()}
    d = {part: array.astype(np.float64) for part, array in w.items()}
    outer = d["embed.0.weight"]
    c.bundle.tensors["pred.action_embed.0.weight"] = (outer @ d["patch_embed.weight"][:, :, 0]).astype(np.float32)
    c.bundle.tensors["pred.action_embed.0.bias"] = (outer @ d["patch_embed.bias"] + d["embed.0.bias"]).astype(np.float32)
    c.layer("pred.action_embed.2", 12, 48, "action_encoder.embed.2")
    c.junk("encoder.embeddings.mask_token")
    predictor(c.bundle, "lewm", 12, 2, 2, 16, head_dim=4, n_frames=3, action_dim=4, state_dim=0, frame_causal=True, ln_eps=1e-5, adaln_eps=1e-6,
              act="gelu_erf", qkv_bias=False, action_act="silu", proj_act="gelu_erf")  # fmt: skip
    head(c.bundle, "none")
    preprocess(c.bundle, IMAGENET, 6, "bilinear", "squash")
    config = {"encoder": {"size": "tiny", "patch_size": 2, "image_size": 6, "num_attention_heads": 2},
              "predictor": {"num_frames": 3, "hidden_dim": 12, "depth": 2, "heads": 2, "mlp_dim": 16, "dim_head": 4}}  # fmt: skip
    c.write(root, "weights.pt", {"config.json": config})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).resolve().parents[2] / "crates/jepa-gguf/tests/fixtures/convert"
    parser.add_argument("--out", type=Path, default=default)
    out = parser.parse_args().out
    if out.exists():
        shutil.rmtree(out)
    for build in (ijepa, hfvit, levjepa, video, vjepa2_1, lewm):
        build(out)


if __name__ == "__main__":
    main()
