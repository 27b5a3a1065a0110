"""Seeded weights: the same numbers on every machine, scaled so that every trait of a family shows in its outputs.

A tensor's numbers depend on its case and its name alone (a counter-based generator, not a library's stream). The scales are
those of a model in which nothing can be left out unnoticed: the stream starts at a deviation of about 0.02, so that the
epsilon of a LayerNorm counts; scores spread over a few units, so that positions and masks count; the MLPs work around -2,
where the two GELUs differ by percents of their value; no bias, norm or token is zero.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from gguf_bundle import Bundle

#: Deviation of what enters the first block.
STREAM = 0.02

#: The same for a predictor, whose blocks are fewer.
PREDICTOR_STREAM = 0.5 * STREAM

#: Deviation of what a block adds to the stream.
STEP = 0.08


def uniform(label: str, shape: tuple[int, ...]) -> np.ndarray:
    """Float32 numbers in [-1, 1), a function of `label` and the index only (SplitMix64)."""
    count = math.prod(shape)
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(zlib.crc32(label.encode())) << np.uint64(32)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - np.float32(1)).reshape(shape)


def normal_like(label: str, shape: tuple[int, ...], scale: float = 1.0) -> np.ndarray:
    """Uniform float32 numbers of deviation `scale`."""
    return uniform(label, shape) * np.float32(scale * math.sqrt(3.0))


class Recipe:
    """Adds seeded tensors to a bundle under the schema's names."""

    def __init__(self, case: str, bundle: Bundle) -> None:
        self.case = case
        self.bundle = bundle

    def put(self, name: str, shape: tuple[int, ...], scale: float, mean: float = 0.0) -> None:
        """A tensor of deviation `scale` around `mean`."""
        self.bundle.tensors[name] = normal_like(f"{self.case}/{name}", shape, scale) + np.float32(mean)

    def linear(self, name: str, rows: int, cols: int, gain: float, bias: float | None = None, mean: float = 0.0) -> None:
        """A Linear whose output has deviation `gain` for inputs of deviation 1; `bias` is the deviation of its bias."""
        self.put(f"{name}.weight", (rows, cols), gain / math.sqrt(cols))
        if bias is not None:
            self.put(f"{name}.bias", (rows,), bias, mean)

    def norm(self, name: str, width: int, scale: float = 1.0) -> None:
        """The weight and bias of a LayerNorm whose output has a deviation near `scale`."""
        self.put(f"{name}.weight", (width,), 0.25 * scale, scale)
        self.put(f"{name}.bias", (width,), 0.25 * scale)

    def block(
        self,
        prefix: str,
        width: int,
        ffn: int,
        *,
        inner: int | None = None,
        fused: bool = True,
        qkv_bias: bool = True,
        layer_scale: bool = False,
        step: float = STEP,
    ) -> None:
        """One transformer block; `inner` is heads times head width where that is not `width`."""
        inner = inner or width
        bias = 0.4 if qkv_bias else None
        step = step * 10.0 if layer_scale else step
        self.norm(f"{prefix}.ln1", width)
        if fused:
            self.linear(f"{prefix}.attn_qkv", 3 * inner, width, 1.6, bias)
        else:
            for part in "qkv":
                self.linear(f"{prefix}.attn_{part}", inner, width, 1.6, bias)
        self.linear(f"{prefix}.attn_out", width, inner, step, 0.3 * step)
        if layer_scale:
            self.put(f"{prefix}.ls1", (width,), 0.04, 0.1)
        self.norm(f"{prefix}.ln2", width)
        self.linear(f"{prefix}.ffn_up", ffn, width, 0.8, 0.4, -2.0)
        self.linear(f"{prefix}.ffn_down", width, ffn, 10.0 * step, 0.3 * step)
        if layer_scale:
            self.put(f"{prefix}.ls2", (width,), 0.04, 0.1)

    def encoder(self, *, table: np.ndarray | None = None, norm_scale: float = 1.0) -> None:
        """All encoder tensors the keys of the bundle ask for; `table` is a position table of deviation near 1."""
        keys = {name.removeprefix("jepa.enc."): value for name, value in self.bundle.keys.items()}
        d, p, c = keys["embed_dim"], keys["patch_size"], keys["in_chans"]
        self.linear("enc.patch_embed", d, c * keys["tubelet_size"] * p * p, STREAM, 0.3 * STREAM)
        if keys.get("image_patch_embed"):
            self.linear("enc.patch_embed_img", d, c * p * p, STREAM, 0.3 * STREAM)
        if keys.get("cls_token"):
            self.put("enc.cls_token", (d,), STREAM)
        if table is not None:
            self.bundle.tensors["enc.pos_embed"] = table.astype(np.float32) * np.float32(STREAM)
        if keys.get("n_registers"):
            self.put("enc.reg_tokens", (keys["n_registers"], d), STREAM)
        if keys.get("modality_embed"):
            self.put("enc.mod_embed_img", (d,), STREAM)
            self.put("enc.mod_embed_video", (d,), STREAM)
        for i in range(keys["n_layer"]):
            fused, scaled = keys.get("qkv_fused", True), keys.get("layer_scale", False)
            self.block(f"enc.blk.{i}", d, keys["ffn_dim"], fused=fused, layer_scale=scaled)
        for k in range(len(keys.get("hier_layers", []))):
            self.norm(f"enc.hier_norm.{k}", d)
        self.norm("enc.norm", d, norm_scale)
        if keys.get("hier_layers"):
            last = len(keys["hier_layers"]) - 1
            for part in ("weight", "bias"):
                self.bundle.tensors[f"enc.norm.{part}"] = self.bundle.tensors[f"enc.hier_norm.{last}.{part}"]

    def masked_predictor(self, *, table: np.ndarray | None = None) -> None:
        """All tensors of a masked predictor the keys of the bundle ask for."""
        keys = {name.removeprefix("jepa.pred."): value for name, value in self.bundle.keys.items()}
        d, wide = keys["embed_dim"], self.bundle.keys["jepa.enc.embed_dim"]
        n_in = keys.get("n_hier_in", 1)
        if n_in > 1:
            self.linear("pred.embed.0", wide, n_in * wide, 1.0, 0.3)
            self.linear("pred.embed.2", d, wide, 1.5 * PREDICTOR_STREAM, 0.3 * PREDICTOR_STREAM)
        else:
            self.linear("pred.embed", d, wide, PREDICTOR_STREAM, 0.3 * PREDICTOR_STREAM)
        self.put("pred.mask_tokens", (keys["n_mask_tokens"], d), PREDICTOR_STREAM)
        if table is not None:
            self.bundle.tensors["pred.pos_embed"] = table.astype(np.float32) * np.float32(PREDICTOR_STREAM)
        if keys.get("modality_embed"):
            self.put("pred.mod_embed_img", (d,), PREDICTOR_STREAM)
            self.put("pred.mod_embed_video", (d,), PREDICTOR_STREAM)
        for i in range(keys["n_layer"]):
            fused = self.bundle.keys.get("jepa.enc.qkv_fused", True)
            self.block(f"pred.blk.{i}", d, keys["ffn_dim"], fused=bool(fused))
        self.norm("pred.norm", d)
        self.linear("pred.proj", n_in * keys["out_dim"], d, 1.0, 0.3)
        if keys.get("context_proj"):
            self.linear("pred.proj_context", n_in * keys["out_dim"], d, 1.0, 0.3)
