"""Writes the files of the first steps: a tiny bundle, a picture, a clip: `quickstart.py [--out tests/fixtures/quickstart]`.

The bundle is an untrained I-JEPA encoder whose patch filters are the low frequencies of brightness and colour, so that its
features follow what is seen: a darker copy of a picture stays near the picture, another picture does not.
"""

from __future__ import annotations

import argparse
import math
import shutil
from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from PIL import Image

import gguf_bundle
from bundle_keys import HALF, encoder, head, preprocess, start
from encoder import encode, pooled
from layers import Model
from positions import sincos2d
from weights import Recipe

#: Samples per pixel and axis; the mean of the samples is the pixel.
SAMPLES = 3

DIM, PATCH, SIDE = 64, 8, 64


def dct_filters() -> np.ndarray:
    """The patch embedding `[64, 3·8·8]`: 32 cosines of brightness, 16 of blue against yellow, 16 of red against green."""
    colours = ((32, (1.0, 1.0, 1.0)), (16, (-0.5, -0.5, 1.0)), (16, (1.0, -1.0, 0.0)))
    order = sorted(((u, v) for u in range(PATCH) for v in range(PATCH)), key=lambda f: (f[0] + f[1], f))
    x = (np.arange(PATCH) + 0.5) * math.pi / PATCH
    rows = []
    for count, mix in colours:
        for u, v in order[:count]:
            wave = np.outer(np.cos(u * x), np.cos(v * x))
            kernel = np.asarray(mix)[:, None, None] * wave
            # High frequencies are weak in pictures; the gain evens them out.
            rows.append(kernel.ravel() / np.linalg.norm(kernel) * (1.0 + u + v) / PATCH)
    return np.stack(rows).astype(np.float32)


def tiny_bundle() -> gguf_bundle.Bundle:
    """An I-JEPA encoder of two blocks for pictures of 64 × 64 pixels."""
    bundle = start("tiny", "ijepa", "image", encoder(DIM, 2, 4, 256, PATCH, SIDE, "sincos2d"))
    bundle.keys["general.license"] = "apache-2.0"
    del bundle.keys["general.source_url"]
    head(bundle, "none")
    preprocess(bundle, HALF, SIDE, "bilinear", "squash")
    recipe = Recipe("quickstart", bundle)
    recipe.encoder(table=5.0 * sincos2d(SIDE // PATCH, SIDE // PATCH, DIM))
    bundle.tensors["enc.patch_embed.weight"] = dct_filters()
    return bundle


Canvas = tuple[np.ndarray, np.ndarray, np.ndarray]


def ball(scene: Canvas, at: tuple[float, float], r: float, colour: tuple[float, ...], up: float = 0.0) -> None:
    """Draws a ball lit from the upper left, `up` pixels above where it would rest, with its shadow on the ground."""
    canvas, x, y = scene
    sx, sy = (x - at[0] - 0.35 * r - 0.4 * up) / (1.3 * r), (y - at[1] - up - 0.95 * r) / (0.3 * r)
    shade = 0.55 / (1.0 + 0.03 * up) * np.clip(1.15 - np.sqrt(sx**2 + sy**2), 0.0, 0.6)[..., None] / 0.6
    canvas *= 1.0 - shade
    dx, dy = (x - at[0]) / r, (y - at[1]) / r
    inside = dx**2 + dy**2 < 1.0
    dz = np.sqrt(np.clip(1.0 - dx**2 - dy**2, 0.0, 1.0))
    light = np.clip(-0.48 * dx - 0.62 * dy + 0.62 * dz, 0.0, 1.0)
    lit = np.asarray(colour) * (0.25 + 0.8 * light)[..., None] + 0.55 * (light**24)[..., None]
    canvas[inside] = lit[inside]


def background(width: int, height: int) -> Canvas:
    """Evening sky, low sun, two ranges of hills and a meadow; returns the canvas and the sample positions in pixels."""
    y, x = np.mgrid[0 : height * SAMPLES, 0 : width * SAMPLES]
    x, y = (x + 0.5) / SAMPLES, (y + 0.5) / SAMPLES
    u, v = x / width, y / height
    top, low = np.array([0.30, 0.50, 0.80]), np.array([0.98, 0.82, 0.62])
    canvas = top + (low - top) * np.clip(v / 0.6, 0.0, 1.0)[..., None] ** 1.2
    away = np.hypot(x - 0.73 * width, y - 0.30 * height) / height
    canvas += np.exp(-((away / 0.16) ** 2))[..., None] * np.array([0.30, 0.22, 0.05])
    canvas[away < 0.075] = (1.0, 0.95, 0.78)
    far = 0.50 - 0.07 * np.sin(5.0 * u + 0.6) - 0.03 * np.sin(13.0 * u)
    near = 0.60 - 0.05 * np.sin(4.0 * u + 3.0) - 0.015 * np.sin(17.0 * u + 1.0)
    for edge, upper, lower in (
        (far, (0.48, 0.55, 0.70), (0.62, 0.66, 0.74)),
        (near, (0.28, 0.42, 0.36), (0.40, 0.55, 0.40)),
        (0.70 + 0.02 * np.sin(3.0 * u), (0.46, 0.64, 0.30), (0.30, 0.48, 0.20)),
    ):
        part = np.clip((v - edge) / 0.3, 0.0, 1.0)[..., None]
        paint = np.asarray(upper) + (np.asarray(lower) - np.asarray(upper)) * part
        canvas = np.where((v > edge)[..., None], paint, canvas)
    return canvas, x, y


def finish(canvas: np.ndarray) -> Image.Image:
    """Averages the samples and rounds to 8 bits."""
    h, w, _ = canvas.shape
    mean = np.clip(canvas, 0.0, 1.0).reshape(h // SAMPLES, SAMPLES, w // SAMPLES, SAMPLES, 3).mean((1, 3))
    return Image.fromarray((mean * 255.0 + 0.5).astype(np.uint8))


def picture() -> Image.Image:
    """A meadow at evening with three balls, 320 × 240."""
    scene = background(320, 240)
    ball(scene, (92.0, 178.0), 34.0, (0.86, 0.24, 0.20))
    ball(scene, (176.0, 198.0), 22.0, (0.20, 0.42, 0.80))
    ball(scene, (254.0, 184.0), 28.0, (0.95, 0.74, 0.22))
    return finish(scene[0])


def clip(frames: int) -> list[Image.Image]:
    """A ball that bounces across the meadow from left to right, 96 × 72 per frame."""
    out = []
    for i in range(frames):
        scene = background(96, 72)
        phase = i / (frames - 1)
        up = 26.0 * abs(math.sin(2.0 * math.pi * phase))
        ball(scene, (12.0 + 72.0 * phase, 60.0 - up), 9.0, (0.86, 0.24, 0.20), up)
        out.append(finish(scene[0]))
    return out


def check_features(bundle: gguf_bundle.Bundle, image: Image.Image) -> None:
    """Insists that a darker copy is nearer to the picture than the picture turned upside down, or noise."""

    def vector(pixels: np.ndarray) -> torch.Tensor:
        small = Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        x = torch.from_numpy(np.asarray(small, dtype=np.float64) / 127.5 - 1.0).permute(2, 0, 1)[None, :, None]
        model = Model(bundle)
        return pooled(model, encode(model, x))[0]

    original = np.asarray(image)
    noise = (np.abs(np.sin(np.arange(original.size) * 12.9898)) * 255.0).astype(np.uint8).reshape(original.shape)
    others = {"darker": (original * 0.85).astype(np.uint8), "turned": original[::-1].copy(), "noise": noise}
    own = vector(original)
    near = {name: float(torch.cosine_similarity(own, vector(other), dim=0)) for name, other in others.items()}
    print("cosine to the picture:", {name: round(value, 3) for name, value in near.items()})
    if not near["darker"] > max(near["turned"], near["noise"]) + 0.01:
        raise ValueError(f"the features do not follow the picture: {near}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).resolve().parent.parent / "fixtures" / "quickstart"
    parser.add_argument("--out", type=Path, default=default, help="the folder to write")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    if out.exists():
        shutil.rmtree(out)
    (out / "clip").mkdir(parents=True)
    bundle, image = tiny_bundle(), picture()
    gguf_bundle.write(bundle, out / "tiny.gguf", Type.F16)
    image.save(out / "picture.png", optimize=True)
    image.save(out / "picture.jpg", quality=90)
    for i, frame in enumerate(clip(8)):
        frame.save(out / "clip" / f"frame_{i:02}.png", optimize=True)
    check_features(gguf_bundle.read(out / "tiny.gguf"), image)
    for file in sorted(out.rglob("*.*")):
        print(f"{file.stat().st_size / 1024:7.1f} KiB  {file.relative_to(out)}")


if __name__ == "__main__":
    main()
