"""Loads exported folders with transformers and compares with a case: `check_export.py CASE_DIR=EXPORTED_DIR…`.

For every encode, classify and predict test that transformers can run: the largest difference over the largest expected value.
Exits with 1 when one is above the case's tolerance. Nothing here is part of the test suite.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoModelForImageClassification, AutoModelForVideoClassification


def load(folder: str) -> tuple[torch.nn.Module, str]:
    """The model and its type; a folder whose tensors do not fit the class exactly is refused."""
    config = AutoConfig.from_pretrained(folder)
    classes = {"IJepaForImageClassification": AutoModelForImageClassification, "ViTForImageClassification": AutoModelForImageClassification,
               "VJEPA2ForVideoClassification": AutoModelForVideoClassification}  # fmt: skip
    kind = classes.get(config.architectures[0], AutoModel)
    extra = {"add_pooling_layer": False} if config.architectures[0] == "ViTModel" else {}
    model, info = kind.from_pretrained(folder, output_loading_info=True, attn_implementation="eager", **extra)
    missing = [name for name in info["missing_keys"] if "mask_token" not in name or config.model_type == "vjepa2"]
    if missing or info["unexpected_keys"] or info["mismatched_keys"]:
        raise SystemExit(f"{folder}: {info}")
    return model.eval(), config.model_type


def outputs(model: torch.nn.Module, kind: str, test: dict, stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """What transformers gives for a test, by role; empty for what it cannot run."""
    options = test.get("options", {})
    if test["kind"] not in ("encode", "classify") or "pixels" not in test["inputs"]:
        return {}
    pixels = stored[test["inputs"]["pixels"]]
    if kind == "vjepa2":
        side = model.config.crop_size
        if tuple(pixels.shape[-2:]) != (side, side):
            return {}
        clip = pixels.transpose(1, 2) if options.get("layout") == "BCTHW" else pixels[:, None]
        if test["kind"] == "classify":
            return {"logits": model(pixel_values_videos=clip).logits}
        base = getattr(model, "vjepa2", model)
        return {"tokens": base(pixel_values_videos=clip, skip_predictor=True).last_hidden_state}
    if test["kind"] == "classify":
        return {"logits": model(pixel_values=pixels).logits}
    base = getattr(model, getattr(model, "base_model_prefix", ""), model)
    other = {} if kind.startswith("dinov2") else {"interpolate_pos_encoding": True}
    return {"tokens": base(pixel_values=pixels, **other).last_hidden_state}


def main() -> None:
    """The command line."""
    worst = False
    torch.set_grad_enabled(False)
    for pair in sys.argv[1:]:
        case_dir, folder = pair.split("=", 1)
        case = json.loads((Path(case_dir) / "case.json").read_text())
        stored = load_file(str(Path(case_dir) / case["expect"]))
        model, kind = load(folder)
        rule = json.loads((Path(folder) / "config.json").read_text()).get("jepa", {}).get("pos_interp")
        for test in case["tests"]:
            for role, got in outputs(model, kind, test, stored).items():
                native = kind == "vjepa2" or tuple(stored[test["inputs"]["pixels"]].shape[-2:]) == (model.config.image_size,) * 2
                if rule and not native:
                    continue  # the bundle's table is resized by a rule that the class does not have
                want = stored[test["outputs"][role]]
                off = float((got - want).abs().max() / want.abs().max())
                bad = off > case["tolerance"]["rel_max"]
                worst |= bad
                print(f"{case['name']:18} {test['id']:24} {role:8} {off:.1e}{'  ABOVE THE BAR' if bad else ''}")
    sys.exit(worst)


if __name__ == "__main__":
    main()
