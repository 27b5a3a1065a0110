"""Where a token is: sincos tables, rotary tables, and tables resized to another grid."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from layers import Rope

Grid = tuple[int, int, int]


def sincos(positions: np.ndarray, width: int) -> np.ndarray:
    """`[sin(p ω_0) … | cos(p ω_0) …]`, `ω_k = 10000^(-k/(width/2))`; one row per position."""
    omega = 10000.0 ** (-np.arange(width // 2) / (width / 2))
    angles = np.asarray(positions, dtype=np.float64)[:, None] * omega
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def sincos2d(gh: int, gw: int, width: int) -> np.ndarray:
    """I-JEPA's table `[gh·gw, width]`: the half of the column comes first."""
    rows, columns = np.divmod(np.arange(gh * gw), gw)
    return np.concatenate([sincos(columns, width // 2), sincos(rows, width // 2)], axis=1)


def sincos3d(grid: Grid, width: int, uniform_power: bool) -> np.ndarray:
    """V-JEPA's table `[gt·gh·gw, width]`: frame, row, column parts, cut to `width`."""
    ids = np.arange(math.prod(grid))
    t, h, w = ids // (grid[1] * grid[2]), ids // grid[2] % grid[1], ids % grid[2]
    third = 2 * math.ceil(width / 6)
    a, b = (third, third) if uniform_power else (width // 2, width // 4)
    return np.concatenate([sincos(t, a), sincos(h, b), sincos(w, b)], axis=1)[:, :width]


def decode_ids(ids: Tensor, gh: int, gw: int) -> Tensor:
    """Token ids `[..]` to positions `[.., 3]` (tubelet, row, column)."""
    inside = ids % (gh * gw)
    return torch.stack((ids // (gh * gw), inside // gw, inside % gw), dim=-1).double()


def rope_tables(positions: Tensor, head_dim: int, theta: float, layout: str) -> Rope:
    """`cos, sin [.., N, head_dim]` for positions `[.., N, 3]`; lanes past three axis widths stand still."""
    d = 2 * (head_dim // 3 // 2)
    lane = torch.arange(d)
    index = lane % (d // 2) if layout == "tiled" else lane // 2
    omega = theta ** (-2.0 * index.double() / d)
    angles = (positions[..., None] * omega).flatten(-2)
    angles = torch.nn.functional.pad(angles, (0, head_dim - 3 * d))
    return torch.cos(angles), torch.sin(angles)


def cubic(s: float, a: float) -> float:
    """Keys' cubic kernel with parameter `a`."""
    s = abs(s)
    if s <= 1.0:
        return (a + 2.0) * s**3 - (a + 3.0) * s**2 + 1.0
    return a * s**3 - 5.0 * a * s**2 + 8.0 * a * s - 4.0 * a if s < 2.0 else 0.0


def axis_weights(n: int, m: int, rule: str) -> Tensor:
    """The matrix `[m, n]` that resizes one axis from `n` to `m` rows.

    Rules: `bicubic_size` (steps of n/m), `bicubic_offset01` (steps of n/(m + 0.1)), `bicubic_antialias`, `linear`.
    """
    weights = torch.zeros(m, n, dtype=torch.float64)
    step = n / (m + 0.1) if rule == "bicubic_offset01" else n / m
    for o in range(m):
        if rule == "bicubic_antialias":
            z, centre = max(step, 1.0), (o + 0.5) * step
            low = max(int(centre - 2.0 * z + 0.5), 0)
            high = min(int(centre + 2.0 * z + 0.5), n)
            for j in range(low, high):
                weights[o, j] = cubic((j - centre + 0.5) / z, -0.5)
            weights[o] /= weights[o].sum()
            continue
        centre = (o + 0.5) * step - 0.5
        if rule == "linear":
            centre = max(centre, 0.0)
            low = math.floor(centre)
            weights[o, min(low, n - 1)] += 1.0 - (centre - low)
            weights[o, min(low + 1, n - 1)] += centre - low
            continue
        low = math.floor(centre)
        for j in range(low - 1, low + 3):
            weights[o, min(max(j, 0), n - 1)] += cubic(centre - j, -0.75)
    return weights


def resize_table(rows: Tensor, old: Grid, new: Grid, rule: str) -> Tensor:
    """Resizes a table `[t·h·w, D]` from grid `old` to grid `new`, axis by axis."""
    table = rows.reshape(*old, -1)
    for axis, (n, m) in enumerate(zip(old, new, strict=True)):
        if rule == "linear" or axis > 0:
            moved = table.movedim(axis, 0)
            table = torch.tensordot(axis_weights(n, m, rule), moved, dims=1).movedim(0, axis)
    return table.reshape(-1, rows.shape[-1])
