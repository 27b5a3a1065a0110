"""Replays cases with the float64 graph and compares every stored output: `check_forward.py [--rel 1e-5] CASE_DIR…`.

Covers all kinds, the outputs of the f16 file and of every quantised file. Prints one line per test, exits 1 when a bar is
missed. Angles of a pose are compared as rotation matrices, since close to gimbal lock two sets of angles are one rotation.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file

from gguf_bundle import read
from layers import Model
from replay import real, rel_max, run_test
from world import rotation


def pose_parts(pose: np.ndarray) -> np.ndarray:
    """A pose with its angles replaced by the nine entries of their rotation matrix."""
    matrix = rotation(real(pose)[..., 3:6]).flatten(-2)
    return torch.cat((real(pose)[..., :3], matrix, real(pose)[..., 6:]), dim=-1).numpy()


def worst(model: Model, test: dict, stored: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """The largest rel_max over the outputs of one test."""
    result = 0.0
    for role, got in run_test(model, test, stored).items():
        expect = wanted[test["outputs"][role]]
        if role in ("new_pose", "poses"):
            got, expect = pose_parts(got.numpy()), pose_parts(expect)
        result = max(result, rel_max(got, expect))
    return result


def check_case(folder: Path, bar: float) -> int:
    """Checks one case directory; returns how many tests missed `bar`."""
    case = json.loads((folder / "case.json").read_text())
    stored = load_file(folder / case["expect"])
    missed = 0

    def report(label: str, value: float) -> None:
        nonlocal missed
        missed += value > bar
        print(f"{'ok  ' if value <= bar else 'MISS'} {case['name']:18} {label:40} {value:.1e}")

    for kind, file in case["models"].items():
        wanted = stored if kind == "f32" else load_file(folder / case[f"expect_{kind}"])
        model = Model(read(folder / file))
        for test in case["tests"]:
            if all(name in wanted for name in test["outputs"].values()):
                report(f"{kind} {test['kind']} {test['id']}", worst(model, test, stored, wanted))
    if "quant" in case:
        stored = load_file(folder / case["quant"]["expect"])
        given = {role: role for role in case["quant"]["inputs"]}
        for variant in case["quant"]["variants"]:
            model = Model(read(folder / variant["file"]))
            tests = {"tokens": ("encode", {"pixels": "pixels"})}
            if "pred" in variant["outputs"]:
                tests["pred"] = ("predict_masked", given | {"context": "context"})
                tokens = run_test(model, {"kind": "encode", "inputs": {"pixels": "pixels"}, "outputs": {"tokens": ""}}, stored)
                index = stored["ctx_ids"].astype(np.int64)[..., None]
                stored = stored | {"context": np.take_along_axis(tokens["tokens"].numpy(), index, axis=1)}
            for role, (kind, inputs) in tests.items():
                if role in variant["outputs"]:
                    test = {"kind": kind, "inputs": inputs, "outputs": {role: variant["outputs"][role]}}
                    report(f"{variant['type']} {role}", worst(model, test, stored, stored))
    return missed


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", type=Path, metavar="CASE_DIR", help="directories that hold a case.json")
    parser.add_argument("--rel", type=float, default=1e-5, help="largest rel_max that passes (default 1e-5)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    missed = sum(check_case(folder, arguments.rel) for folder in arguments.cases)
    print(f"{missed} missed" if missed else "all within the bar")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
