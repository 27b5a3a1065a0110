"""Builds one case directory: model files, stored inputs, expected outputs, `case.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save
from torch import Tensor

import gguf_bundle
from gguf_bundle import Bundle
from layers import Model
from replay import rel_max, run_test
from weights import normal_like, uniform

#: How closely the float64 graph must agree with a public reference, as a part of the largest value.
AGREEMENT = 1e-5

TOLERANCE = {"cos_min": 0.99999, "rel_max": 0.0001}


class Case:
    """A case being built. Expected outputs are the public reference's where a test passes one, the float64 graph's otherwise."""

    def __init__(self, folder: Path, bundle: Bundle, description: str, reference: str) -> None:
        self.folder = folder
        self.name = folder.name
        folder.mkdir(parents=True)
        gguf_bundle.write(bundle, folder / "model-f32.gguf")
        self.bundle = gguf_bundle.read(folder / "model-f32.gguf")
        self.model = Model(self.bundle)
        self.stored: dict[str, np.ndarray] = {}
        self.agreement = 0.0
        self.case: dict[str, Any] = {
            "name": self.name,
            "family": bundle.keys["jepa.family"],
            "description": description,
            "reference": reference,
            "models": {"f32": "model-f32.gguf"},
            "expect": "expect.safetensors",
            "tolerance": TOLERANCE,
            "tests": [],
        }

    def pixels(self, test: str, shape: tuple[int, ...]) -> Tensor:
        """Seeded normalised pixels under `<test>.pixels`; returned as a float64 clip `[B, C, T, H, W]`."""
        self.real(f"{test}.pixels", shape)
        x = torch.from_numpy(self.stored[f"{test}.pixels"]).double()
        return x[:, :, None] if x.dim() == 4 else x

    def real(self, name: str, shape: tuple[int, ...], scale: float = 1.0) -> Tensor:
        """A seeded float32 input."""
        self.stored[name] = normal_like(f"{self.name}/input/{name}", shape, scale)
        return torch.from_numpy(self.stored[name]).double()

    def ids(self, name: str, batch: int, count: int, total: int) -> Tensor:
        """`count` different ids below `total` per batch row, unsorted."""
        order = np.argsort(uniform(f"{self.name}/input/{name}", (batch, total)), axis=1, kind="stable")
        return self.put(name, order[:, :count].astype(np.int32))

    def put(self, name: str, array: np.ndarray) -> Tensor:
        """Stores an input as it is; returned as a tensor."""
        self.stored[name] = np.ascontiguousarray(array)
        return torch.from_numpy(self.stored[name]).to(torch.int64 if array.dtype == np.int32 else torch.float64)

    def test(
        self,
        test: str,
        kind: str,
        inputs: Mapping[str, str],
        roles: Sequence[str],
        options: Mapping[str, Any],
        *,
        reference: Mapping[str, Tensor] | None = None,
        optional: Sequence[str] = (),
        note: str | None = None,
    ) -> dict[str, Tensor]:
        """Adds a test and returns its expected outputs by role."""
        entry: dict[str, Any] = {
            "id": test,
            "kind": kind,
            "inputs": dict(inputs),
            "outputs": {role: f"{test}.{role}" for role in (*roles, *optional)},
            "options": dict(options),
        }
        if note:
            entry["note"] = note
        if optional:
            entry["optional_outputs"] = list(optional)
        out = run_test(self.model, entry, self.stored)
        for role, values in (reference or {}).items():
            if role in out:
                difference = rel_max(out[role], values)
                if difference > AGREEMENT:
                    raise ValueError(f"{self.name}/{test}: {role} is {difference:.1e} off the reference")
                self.agreement = max(self.agreement, difference)
                out[role] = values
        for role, values in out.items():
            kind_ = np.int32 if values.dtype == torch.int32 else np.float32
            self.stored[f"{test}.{role}"] = values.numpy().astype(kind_)
        self.case["tests"].append(entry)
        return out

    def add_f16(self) -> None:
        """Adds the f16 file and its outputs, computed in float64 from the widened weights."""
        file = self.folder / "model-f16.gguf"
        gguf_bundle.write(self.bundle, file, Type.F16)
        model = Model(gguf_bundle.read(file))
        expect: dict[str, np.ndarray] = {}
        for test in self.case["tests"]:
            for role, values in run_test(model, test, self.stored).items():
                kind = np.int32 if values.dtype == torch.int32 else np.float32
                expect[test["outputs"][role]] = values.numpy().astype(kind)
        self.case["models"]["f16"] = file.name
        self.case["expect_f16"] = "expect-f16.safetensors"
        self.case["expect_f16_note"] = "same inputs; outputs for the f16 weights, computed in float64 from the f16 file"
        (self.folder / "expect-f16.safetensors").write_bytes(save(expect))

    def add_q8_0(self, pixels: str) -> None:
        """Adds the q8_0 file and the encoder's outputs for the stored input `pixels`, from the dequantised weights."""
        file = self.folder / "model-q8_0.gguf"
        gguf_bundle.write(self.bundle, file, Type.Q8_0)
        bundle = gguf_bundle.read(file)
        expect = {"pixels": self.stored[pixels]}
        test = {"kind": "encode", "inputs": {"pixels": "pixels"}, "outputs": {"tokens": "q8_0.tokens"}}
        tokens = run_test(Model(bundle), test, expect)["tokens"]
        plain = run_test(self.model, test, expect)["tokens"]
        expect["q8_0.tokens"] = tokens.numpy().astype(np.float32)
        cosine = torch.nn.functional.cosine_similarity(tokens, plain, dim=-1).mean()
        self.case["quant"] = {
            "expect": "expect-quant.safetensors",
            "inputs": ["pixels"],
            "note": "outputs of the encoder for `pixels`",
            "variants": [
                {
                    "type": "q8_0",
                    "file": file.name,
                    "tensor_types": {name: kind.name for name, kind in bundle.types.items() if kind != Type.F32},
                    "outputs": {"tokens": "q8_0.tokens"},
                    "cos_mean_vs_f32_model": round(float(cosine), 6),
                }
            ],
        }
        (self.folder / "expect-quant.safetensors").write_bytes(save(expect))

    def finish(self) -> None:
        """Writes `expect.safetensors` and `case.json`."""
        (self.folder / "expect.safetensors").write_bytes(save(self.stored))
        self.case["tensors"] = {
            name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in self.stored.items()
        }
        (self.folder / "case.json").write_text(json.dumps(self.case, indent=1) + "\n")
