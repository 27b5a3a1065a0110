"""The public reference models: a bundle's tensors loaded into the `transformers` classes, run in float64.

Attention is `sdpa`, because the eager path of these classes rounds the softmax to float32.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import (
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
    IJepaConfig,
    IJepaForImageClassification,
    ViTConfig,
    ViTModel,
    VJEPA2Config,
    VJEPA2ForVideoClassification,
)

from gguf_bundle import Bundle

ACT = {"gelu_erf": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "silu": "silu"}


class Reader:
    """Float64 tensors of a bundle, split and reshaped the way the classes name them."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.state: dict[str, Tensor] = {}

    def tensor(self, name: str) -> Tensor:
        """Tensor `name` as float64."""
        return torch.from_numpy(self.bundle.tensors[name]).double()

    def linear(self, source: str, target: str) -> None:
        """Weight and bias of `source` under `target`; also for norms."""
        for part in ("weight", "bias"):
            self.state[f"{target}.{part}"] = self.tensor(f"{source}.{part}")

    def qkv(self, source: str, targets: tuple[str, str, str]) -> None:
        """The three row groups of `source.attn_qkv`, or the separate tensors."""
        for part in ("weight", "bias"):
            if f"{source}.attn_qkv.{part}" in self.bundle.tensors:
                groups = self.tensor(f"{source}.attn_qkv.{part}").chunk(3)
            else:
                groups = [self.tensor(f"{source}.attn_{p}.{part}") for p in "qkv"]
            for target, group in zip(targets, groups, strict=True):
                self.state[f"{target}.{part}"] = group

    def block(self, source: str, target: str, names: dict[str, str]) -> None:
        """A block; `names` maps the schema's part names to the class's."""
        self.qkv(source, tuple(f"{target}.{names[p]}" for p in "qkv"))
        for part in ("ln1", "attn_out", "ln2", "ffn_up", "ffn_down"):
            self.linear(f"{source}.{part}", f"{target}.{names[part]}")
        for part in ("ls1", "ls2"):
            if f"{source}.{part}" in self.bundle.tensors:
                self.state[f"{target}.{names[part]}"] = self.tensor(f"{source}.{part}")


VIT = {
    "q": "attention.q_proj",
    "k": "attention.k_proj",
    "v": "attention.v_proj",
    "attn_out": "attention.o_proj",
    "ln1": "layernorm_before",
    "ln2": "layernorm_after",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}
DINO = VIT | {"ln1": "norm1", "ln2": "norm2", "ls1": "layer_scale1.lambda1", "ls2": "layer_scale2.lambda1"}
VJEPA2 = {
    "q": "attention.query",
    "k": "attention.key",
    "v": "attention.value",
    "attn_out": "attention.proj",
    "ln1": "norm1",
    "ln2": "norm2",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}
POOLER = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "attn_out": "self_attn.out_proj",
    "ln1": "layer_norm1",
    "ln2": "layer_norm2",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}


def enc_key(bundle: Bundle, name: str) -> object:
    """Key `jepa.enc.<name>`."""
    return bundle.keys[f"jepa.enc.{name}"]


def image_config(bundle: Bundle) -> dict[str, object]:
    """The configuration entries the three image classes share."""
    return {
        "hidden_size": enc_key(bundle, "embed_dim"),
        "num_hidden_layers": enc_key(bundle, "n_layer"),
        "num_attention_heads": enc_key(bundle, "n_head"),
        "image_size": enc_key(bundle, "img_size"),
        "patch_size": enc_key(bundle, "patch_size"),
        "layer_norm_eps": float(enc_key(bundle, "ln_eps")),
        "hidden_act": ACT[str(enc_key(bundle, "act"))],
        "attn_implementation": "sdpa",
    }


def finish(model: nn.Module, state: dict[str, Tensor], unused: tuple[str, ...] = ()) -> nn.Module:
    """Loads `state` and insists that only tensors whose names start with `unused` are missing."""
    model = model.double().eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    left = [name for name in missing if not name.startswith(unused or ("\0",))]
    if left or unexpected:
        raise ValueError(f"missing {left}, unexpected {unexpected}")
    return model


def image_reader(bundle: Bundle, prefix: str, layers: str, names: dict[str, str]) -> Reader:
    """The tensors of an image encoder under `prefix`."""
    reader = Reader(bundle)
    side = enc_key(bundle, "patch_size")
    kernel = reader.tensor("enc.patch_embed.weight").reshape(-1, 3, side, side)
    reader.state[f"{prefix}embeddings.patch_embeddings.projection.weight"] = kernel
    reader.state[f"{prefix}embeddings.patch_embeddings.projection.bias"] = reader.tensor("enc.patch_embed.bias")
    reader.state[f"{prefix}embeddings.position_embeddings"] = reader.tensor("enc.pos_embed")[None]
    if enc_key(bundle, "cls_token"):
        reader.state[f"{prefix}embeddings.cls_token"] = reader.tensor("enc.cls_token")[None, None]
    for i in range(enc_key(bundle, "n_layer")):
        reader.block(f"enc.blk.{i}", f"{prefix}{layers}.{i}", names)
    reader.linear("enc.norm", f"{prefix}layernorm")
    return reader


def ijepa(bundle: Bundle) -> Callable[[Tensor], dict[str, Tensor]]:
    """`IJepaForImageClassification` of pictures `[B, 3, 1, H, W]`: tokens, and logits when the bundle has a linear head."""
    labels = bundle.keys.get("jepa.head.n_classes", 0)
    config = IJepaConfig(intermediate_size=enc_key(bundle, "ffn_dim"), num_labels=labels, **image_config(bundle))
    reader = image_reader(bundle, "ijepa.", "layers", VIT)
    if labels:
        reader.linear("head.cls", "classifier")
    model = finish(IJepaForImageClassification(config), reader.state)

    def run(pixels: Tensor) -> dict[str, Tensor]:
        tokens = model.ijepa(pixels[:, :, 0], interpolate_pos_encoding=True).last_hidden_state
        logits = model(pixels[:, :, 0], interpolate_pos_encoding=True).logits
        return {"tokens": tokens, "pooled": tokens.mean(1), "logits": logits}

    return run


def vit(bundle: Bundle) -> Callable[[Tensor], dict[str, Tensor]]:
    """`ViTModel` (LeWM's encoder)."""
    config = ViTConfig(intermediate_size=enc_key(bundle, "ffn_dim"), **image_config(bundle))
    model = finish(ViTModel(config, add_pooling_layer=False), image_reader(bundle, "", "layers", VIT).state)

    def run(pixels: Tensor) -> dict[str, Tensor]:
        tokens = model(pixels[:, :, 0], interpolate_pos_encoding=True).last_hidden_state
        return {"tokens": tokens, "pooled": tokens[:, 0]}

    return run


def dinov2_registers(bundle: Bundle) -> Callable[[Tensor], dict[str, Tensor]]:
    """`Dinov2WithRegistersModel`."""
    ratio, rest = divmod(enc_key(bundle, "ffn_dim"), enc_key(bundle, "embed_dim"))
    if rest:
        raise ValueError("Dinov2WithRegisters wants an ffn_dim that embed_dim divides")
    config = Dinov2WithRegistersConfig(mlp_ratio=ratio, num_register_tokens=enc_key(bundle, "n_registers"), **image_config(bundle))
    reader = image_reader(bundle, "", "encoder.layer", DINO)
    reader.state["embeddings.register_tokens"] = reader.tensor("enc.reg_tokens")[None]
    model = finish(Dinov2WithRegistersModel(config), reader.state, ("embeddings.mask_token",))

    def run(pixels: Tensor) -> dict[str, Tensor]:
        tokens = model(pixels[:, :, 0]).last_hidden_state
        return {"tokens": tokens, "pooled": tokens[:, 0]}

    return run


class VJepa2:
    """`VJEPA2ForVideoClassification` of a bundle; parts the bundle lacks keep their initial weights and are not run."""

    def __init__(self, bundle: Bundle) -> None:
        pred = {name.removeprefix("jepa.pred."): value for name, value in bundle.keys.items()}
        width = enc_key(bundle, "embed_dim")
        config = VJEPA2Config(
            patch_size=enc_key(bundle, "patch_size"),
            crop_size=enc_key(bundle, "img_size"),
            frames_per_clip=enc_key(bundle, "n_frames"),
            tubelet_size=enc_key(bundle, "tubelet_size"),
            hidden_size=width,
            num_attention_heads=enc_key(bundle, "n_head"),
            num_hidden_layers=enc_key(bundle, "n_layer"),
            mlp_ratio=enc_key(bundle, "ffn_dim") / width,
            layer_norm_eps=float(enc_key(bundle, "ln_eps")),
            hidden_act=ACT[str(enc_key(bundle, "act"))],
            num_pooler_layers=bundle.keys.get("jepa.head.n_pool_layers", 1),
            num_labels=bundle.keys.get("jepa.head.n_classes", 2),
            pred_hidden_size=pred.get("embed_dim", 12),
            pred_num_attention_heads=pred.get("n_head", 1),
            pred_num_hidden_layers=pred.get("n_layer", 1),
            pred_num_mask_tokens=pred.get("n_mask_tokens", 1),
            pred_mlp_ratio=pred.get("ffn_dim", 12) / pred.get("embed_dim", 12),
            attn_implementation="sdpa",
        )
        reader = Reader(bundle)
        p = enc_key(bundle, "patch_size")
        kernel = reader.tensor("enc.patch_embed.weight").reshape(width, 3, enc_key(bundle, "tubelet_size"), p, p)
        reader.state["vjepa2.encoder.embeddings.patch_embeddings.proj.weight"] = kernel
        reader.state["vjepa2.encoder.embeddings.patch_embeddings.proj.bias"] = reader.tensor("enc.patch_embed.bias")
        for i in range(enc_key(bundle, "n_layer")):
            reader.block(f"enc.blk.{i}", f"vjepa2.encoder.layer.{i}", VJEPA2)
        reader.linear("enc.norm", "vjepa2.encoder.layernorm")
        unused = []
        if pred.get("kind") == "masked":
            self._predictor(reader, pred["n_layer"])
        else:
            unused.append("vjepa2.predictor.")
        if bundle.keys.get("jepa.head.kind") == "attentive_pool":
            self._head(reader, bundle.keys["jepa.head.n_pool_layers"])
        else:
            unused += ["pooler.", "classifier."]
        self.model = finish(VJEPA2ForVideoClassification(config), reader.state, tuple(unused))

    @staticmethod
    def _predictor(reader: Reader, layers: int) -> None:
        p = "vjepa2.predictor"
        reader.linear("pred.embed", f"{p}.embeddings.predictor_embeddings")
        reader.state[f"{p}.embeddings.mask_tokens"] = reader.tensor("pred.mask_tokens")[:, None, None]
        for i in range(layers):
            reader.block(f"pred.blk.{i}", f"{p}.layer.{i}", VJEPA2)
        reader.linear("pred.norm", f"{p}.layernorm")
        reader.linear("pred.proj", f"{p}.proj")

    @staticmethod
    def _head(reader: Reader, layers: int) -> None:
        reader.state["pooler.query_tokens"] = reader.tensor("head.query")[None]
        for i in range(layers):
            reader.block(f"head.blk.{i}", f"pooler.self_attention_layers.{i}", POOLER)
        cross = "pooler.cross_attention_layer"
        for part in "qkv":
            reader.linear(f"head.xattn.{part}", f"{cross}.cross_attn.{part}_proj")
        reader.linear("head.xattn.ln_kv", f"{cross}.layer_norm1")
        reader.linear("head.xattn.ln2", f"{cross}.layer_norm2")
        reader.linear("head.xattn.ffn_up", f"{cross}.mlp.fc1")
        reader.linear("head.xattn.ffn_down", f"{cross}.mlp.fc2")
        reader.linear("head.cls", "classifier")

    def encode(self, pixels: Tensor) -> dict[str, Tensor]:
        """Tokens of a clip `[B, 3, T, H, W]`."""
        tokens = self.model.vjepa2.get_vision_features(pixels.transpose(1, 2))
        return {"tokens": tokens, "pooled": tokens.mean(1)}

    def predict(self, pixels: Tensor, ctx_ids: Tensor, tgt_ids: Tensor) -> dict[str, Tensor]:
        """The predictor on the encoder's rows at `ctx_ids`, mask token 1."""
        out = self.model.vjepa2(pixels.transpose(1, 2), context_mask=[ctx_ids], target_mask=[tgt_ids])
        return {"pred": out.predictor_output.last_hidden_state}

    def classify(self, pixels: Tensor) -> dict[str, Tensor]:
        """Logits and the pooled vector of a clip."""
        pooled = self.model.pooler(self.encode(pixels)["tokens"])
        return {"pooled": pooled.reshape(pooled.shape[0], -1), "logits": self.model(pixels.transpose(1, 2)).logits}
