"""The metadata of a case's bundle, in the order a converter writes it."""

from __future__ import annotations

from gguf_bundle import Bundle, Key

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
HALF = ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])


def start(name: str, family: str, modality: str, enc: dict[str, Key]) -> Bundle:
    """A bundle with the general keys and `jepa.enc.<name>` for every entry of `enc`."""
    keys: dict[str, Key] = {
        "general.name": name,
        "general.license": "mit",
        "general.source_url": "https://example.invalid/seeded",
        "jepa.schema_version": 1,
        "jepa.family": family,
        "jepa.modality": modality,
    }
    return Bundle(keys | {f"jepa.enc.{name}": value for name, value in enc.items()})


def encoder(
    dim: int, layers: int, heads: int, ffn: int, patch: int, img: int, pos: str, *, tubelet: int = 1, frames: int = 1, **more: Key
) -> dict[str, Key]:
    """The encoder keys every family has, then `more`."""
    return {
        "embed_dim": dim,
        "n_layer": layers,
        "n_head": heads,
        "ffn_dim": ffn,
        "patch_size": patch,
        "tubelet_size": tubelet,
        "img_size": img,
        "n_frames": frames,
        "in_chans": 3,
        "ln_eps": 1e-6,
        "act": "gelu_erf",
        "pos_type": pos,
        "cls_token": False,
        "n_registers": 0,
        "qkv_fused": True,
        "layer_scale": False,
    } | more


def rope(layout: str, **more: Key) -> dict[str, Key]:
    """The encoder keys of a rotary family."""
    return {"rope_theta": 10000.0, "rope_interpolate": False, "rope_freq_layout": layout} | more


def predictor(bundle: Bundle, kind: str, dim: int, layers: int, heads: int, ffn: int, **more: Key) -> None:
    """Adds the predictor keys."""
    keys = {"kind": kind, "embed_dim": dim, "n_layer": layers, "n_head": heads, "ffn_dim": ffn} | more
    bundle.keys.update({f"jepa.pred.{name}": value for name, value in keys.items()})


def head(bundle: Bundle, kind: str, labels: list[str] | None = None, pool_layers: int | None = None) -> None:
    """Adds the head keys; kind `none` for no head."""
    bundle.keys["jepa.head.kind"] = kind
    if labels:
        bundle.keys["jepa.head.n_classes"] = len(labels)
        if pool_layers is not None:
            bundle.keys["jepa.head.n_pool_layers"] = pool_layers
        bundle.keys["jepa.head.labels"] = labels


def preprocess(bundle: Bundle, statistics: tuple[list[float], list[float]], short: int, resample: str, mode: str | None) -> None:
    """Adds the preprocessing keys; the crop is the encoder's image size, `mode` is left out when None."""
    mean, std = statistics
    keys: dict[str, Key] = {"mean": mean, "std": std, "resize_short": short, "crop": bundle.keys["jepa.enc.img_size"]}
    keys["resample"] = resample
    if mode:
        keys["resize_mode"] = mode
    keys["rescale"] = 1.0 / 255.0
    bundle.keys.update({f"jepa.pre.{name}": value for name, value in keys.items()})
