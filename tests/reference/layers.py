"""The float64 building blocks of every graph: linear layers, norms, activations, attention, the pre-LN block.

Arrays are torch float64 tensors `[batch, tokens, dim]`. A :class:`Model` gives tensors and keys of one bundle by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gguf_bundle import Bundle

Rope = tuple[Tensor, Tensor]


def gelu_erf(x: Tensor) -> Tensor:
    """`x/2 (1 + erf(x/√2))`."""
    return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))


def gelu_tanh(x: Tensor) -> Tensor:
    """`x/2 (1 + tanh(√(2/π)(x + 0.044715 x³)))`."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: Tensor) -> Tensor:
    """`x/(1 + e^-x)`."""
    return x * torch.sigmoid(x)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu_erf": gelu_erf, "gelu_tanh": gelu_tanh, "silu": silu}


class Model:
    """A bundle seen by a graph: float64 tensors by name, keys with the schema's defaults.

    `deviations` names deliberate mistakes of the graph, used to prove that a stored number would notice them.
    """

    def __init__(self, bundle: Bundle, deviations: Iterable[str] = ()) -> None:
        self.bundle = bundle
        self.deviations = frozenset(deviations)
        self._cache: dict[str, Tensor] = {}

    def key(self, name: str, default: object = None) -> object:
        """Key `jepa.<name>`; `default` when absent; an error when absent and without default."""
        value = self.bundle.keys.get(f"jepa.{name}", default)
        if value is None:
            raise KeyError(f"jepa.{name}")
        return value

    def int(self, name: str, default: int | None = None) -> int:
        """An integer key."""
        return int(self.key(name, default))

    def float(self, name: str, default: float | None = None) -> float:
        """A float key."""
        return float(self.key(name, default))

    @property
    def family(self) -> str:
        """`jepa.family`."""
        return str(self.key("family"))

    def has(self, name: str) -> bool:
        """Whether the bundle has tensor `name`."""
        return name in self.bundle.tensors

    def tensor(self, name: str) -> Tensor:
        """Tensor `name` as float64."""
        if name not in self._cache:
            self._cache[name] = torch.from_numpy(self.bundle.tensors[name].astype(np.float64))
        return self._cache[name]

    def linear(self, name: str, x: Tensor) -> Tensor:
        """`x Wᵀ + b`; no bias when the bundle has none."""
        y = x @ self.tensor(f"{name}.weight").T
        return y + self.tensor(f"{name}.bias") if self.has(f"{name}.bias") else y

    def norm(self, name: str, x: Tensor, eps: float) -> Tensor:
        """LayerNorm with the weight and bias of `name`."""
        return layer_norm(x, eps) * self.tensor(f"{name}.weight") + self.tensor(f"{name}.bias")

    def mlp(self, name: str, act: str, x: Tensor) -> Tensor:
        """`<name>.2(act(<name>.0(x)))`."""
        return self.linear(f"{name}.2", ACTIVATIONS[act](self.linear(f"{name}.0", x)))


def layer_norm(x: Tensor, eps: float) -> Tensor:
    """LayerNorm over the last axis, biased variance, no weights."""
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps)


def apply_rope(x: Tensor, rope: Rope) -> Tensor:
    """Turns `x [.., N, head_dim]` by the tables `cos, sin`, both broadcastable to `x`."""
    cos, sin = rope
    turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    if turned.shape[-1] < x.shape[-1]:
        turned = torch.nn.functional.pad(turned, (0, 1))
    return x * cos + turned * sin


def attention(q: Tensor, k: Tensor, v: Tensor, n_head: int, rope: Rope | None = None, mask: Tensor | None = None) -> Tensor:
    """Multi-head attention over `[B, N, n_head·hd]`; `mask[i, j]` is true where query i sees key j."""
    b, n, width = q.shape
    hd = width // n_head

    def split(x: Tensor) -> Tensor:
        return x.reshape(b, x.shape[1], n_head, hd).transpose(1, 2)

    q, k, v = split(q), split(k), split(v)
    if rope is not None:
        q, k = apply_rope(q, rope), apply_rope(k, rope)
    scores = q @ k.transpose(-1, -2) / math.sqrt(hd)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, n, width)


@dataclass(frozen=True)
class Stack:
    """What all blocks of one stack share."""

    n_layer: int
    n_head: int
    eps: float
    act: str


def qkv(model: Model, prefix: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of block `prefix`, from the fused tensor or the three separate ones."""
    if model.has(f"{prefix}.attn_qkv.weight"):
        q, k, v = model.linear(f"{prefix}.attn_qkv", x).chunk(3, dim=-1)
        return q, k, v
    return tuple(model.linear(f"{prefix}.attn_{part}", x) for part in "qkv")


def block(model: Model, prefix: str, stack: Stack, x: Tensor, rope: Rope | None = None, mask: Tensor | None = None) -> Tensor:
    """One pre-LN block: attention and MLP, each added to the stream, with layer scale where the bundle has it."""
    q, k, v = qkv(model, prefix, model.norm(f"{prefix}.ln1", x, stack.eps))
    a = model.linear(f"{prefix}.attn_out", attention(q, k, v, stack.n_head, rope, mask))
    x = x + (a * model.tensor(f"{prefix}.ls1") if model.has(f"{prefix}.ls1") else a)
    h = ACTIVATIONS[stack.act](model.linear(f"{prefix}.ffn_up", model.norm(f"{prefix}.ln2", x, stack.eps)))
    h = model.linear(f"{prefix}.ffn_down", h)
    return x + (h * model.tensor(f"{prefix}.ls2") if model.has(f"{prefix}.ls2") else h)
