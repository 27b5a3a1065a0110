"""Writes the parity cases and the table of flips: `make_cases.py [--out tests/fixtures]`.

Every case directory under `OUT/cases` is written anew, then `OUT/flips.json`. The run fails when the float64 graph and a
public reference disagree, or when a flip goes unnoticed.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
from torch.nn.functional import interpolate

from families import hfvit, ijepa, levjepa, lewm, vjepa, vjepa2, vjepa2_1
from flips import record
from positions import resize_table
from weights import normal_like

FAMILIES = (ijepa, vjepa, vjepa2, vjepa2_1, levjepa, hfvit, lewm)


def check_resizing() -> None:
    """Holds our resizing against torch's for growing and shrinking grids, all four rules."""
    table = torch.from_numpy(normal_like("resizing", (2 * 4 * 5, 3))).double()
    for new in ((2, 6, 5), (2, 3, 7), (2, 9, 2)):
        plane = table[:20]
        image = plane.reshape(1, 4, 5, 3).permute(0, 3, 1, 2)
        size = new[1:]
        factor = tuple((m + 0.1) / n for m, n in zip(size, (4, 5), strict=True))
        torchs = {
            "bicubic_size": interpolate(image, size=size, mode="bicubic"),
            "bicubic_antialias": interpolate(image, size=size, mode="bicubic", antialias=True),
            "bicubic_offset01": interpolate(image, scale_factor=factor, mode="bicubic"),
        }
        for rule, wanted in torchs.items():
            ours = resize_table(plane, (1, 4, 5), (1, *size), rule)
            torch.testing.assert_close(ours, wanted.permute(0, 2, 3, 1).reshape(-1, 3), rtol=0.0, atol=1e-9)
    for new in ((3, 6, 5), (1, 3, 7)):
        wanted = interpolate(table.reshape(1, 2, 4, 5, 3).permute(0, 4, 1, 2, 3), size=new, mode="trilinear")
        ours = resize_table(table, (2, 4, 5), new, "linear")
        torch.testing.assert_close(ours, wanted.permute(0, 2, 3, 4, 1).reshape(-1, 3), rtol=0.0, atol=1e-9)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).resolve().parent.parent / "fixtures"
    parser.add_argument("--out", type=Path, default=default, help="the folder that holds cases/ and flips.json")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    check_resizing()
    root = out / "cases"
    if root.exists():
        shutil.rmtree(root)
    root.mkdir(parents=True)
    table = []
    for family in FAMILIES:
        for case, flips in family.build(root):
            size = sum(file.stat().st_size for file in case.folder.iterdir()) / 1024
            tests = len(case.case["tests"])
            public = f", transformers agrees to {case.agreement:.0e}" if case.agreement else ""
            print(f"{case.name}: {tests} tests, {size:.0f} KiB{public}")
            for flip in flips:
                entry = record(case, flip)
                print(f"    {flip.name:52} {entry['rel_max']:8.1e}  {entry['test']}")
                table.append(entry)
    unnoticed = [f"{entry['case']}: {entry['flip']}" for entry in table if not entry["misses"]]
    if unnoticed:
        raise SystemExit("no test notices " + "; ".join(unnoticed))
    (out / "flips.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
