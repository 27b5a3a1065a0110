"""Makes ../fixtures: small pictures of every kind that is read, and the reference results for them.

    python pictures.py        # from this folder; also needs cjpeg of libjpeg-turbo-progs

Written with Pillow 13.0.0 (libjpeg-turbo 3.2.0), numpy 2.4.6, torch 2.15.0 (CPU capability AVX2), torchvision 0.29.2,
transformers 5.24.0 and cjpeg of libjpeg-turbo 2.1.5. Everything is seeded; other versions may compress differently, but
the expected pixels must stay.

    pictures/*              the files
    decoded.safetensors     file name -> u8 [height, width, 3]: Pillow's exif_transpose and convert("RGB"), except for 16-bit
                            gray, where convert() clips instead of scaling and the upper byte is taken
    resized.safetensors     source.H.W and resize.FILTER.H.W.OUT_H.OUT_W, u8, by torchvision
    processed.safetensors   source.N, and for each case the u8 result of the Hugging Face processors (for source 0 f32 too);
                            the metadata entry "cases" holds their settings as JSON
"""

import io
import json
import shutil
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors.numpy import save_file
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional
from transformers import BitImageProcessor, ViTImageProcessor

OUT = Path(__file__).resolve().parent.parent / "fixtures"
PICTURES = OUT / "pictures"
rng = np.random.default_rng(20)


def smooth(height, width):
    """Slow waves and a little noise: something for every part of a lossy codec."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / 3 + y / 5), np.cos(x / 4 - y / 3), np.sin(x * y / 40)]
    noisy = np.stack(waves, -1) * 110 + 128 + rng.integers(-20, 21, (height, width, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def keep(name, data):
    (PICTURES / name).write_bytes(data)


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def oriented(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def jpegs():
    for name, subsampling in [("444", 0), ("422", 1), ("420", 2)]:
        keep(f"jpeg_{name}.jpg", saved(smooth(21, 19), "JPEG", quality=85, subsampling=subsampling))
        options = {"progressive": True, "restart_marker_blocks": 3}
        keep(f"jpeg_progressive_{name}.jpg", saved(smooth(19, 37), "JPEG", quality=70, subsampling=subsampling, **options))
    keep("jpeg_narrow.jpg", saved(smooth(5, 3), "JPEG", subsampling=2))
    keep("jpeg_dot.jpg", saved(smooth(1, 1), "JPEG", subsampling=2))
    keep("jpeg_restarts_optimised.jpg", saved(smooth(33, 20), "JPEG", optimize=True, restart_marker_rows=1))
    keep("jpeg_coarse.jpg", saved(smooth(24, 24), "JPEG", quality=5))
    keep("jpeg_gray.jpg", saved(smooth(17, 14).convert("L"), "JPEG"))
    keep("jpeg_adobe_rgb.jpg", saved(smooth(12, 13), "JPEG", keep_rgb=True))
    cmyk = bytearray(saved(smooth(18, 15).convert("CMYK"), "JPEG", subsampling=2))
    keep("jpeg_cmyk.jpg", bytes(cmyk))
    cmyk[cmyk.find(b"Adobe") + 11] = 2
    keep("jpeg_ycck.jpg", bytes(cmyk))
    for value in range(1, 9):
        keep(f"jpeg_orientation_{value}.jpg", saved(smooth(5, 9), "JPEG", quality=50, exif=oriented(value)))
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="6"/></x:xmpmeta>'
    keep("jpeg_xmp_orientation.jpg", saved(smooth(5, 9), "JPEG", quality=50, xmp=xmp))

    samplings = ["1x2", "4x1", "4x2", "1x4", "3x1", "2x2,2x1,1x2", "1x1,2x2,1x1", "2x2,1x1,2x1"]
    scripts = {
        "separate": "0;1;2;",
        "spectral": "0,1,2:0-0,0,3;0,1,2:0-0,3,2;0:1-63,0,2;1:1-5,0,1;1:6-63,0,0;2:1-63,0,0;0:1-63,2,1;"
        "0:1-63,1,0;1:1-5,1,0;0,1,2:0-0,2,1;0,1,2:0-0,1,0;",
    }
    for sampling in samplings:
        factors = sampling if "," in sampling else sampling + ",1x1,1x1"
        data = cjpeg(smooth(22, 23), "-sample", factors)
        keep(f"jpeg_sampling_{sampling.replace(',', '_')}.jpg", data)
    for name, script in scripts.items():
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(script.replace(";", ";\n"))
            file.flush()
            keep(f"jpeg_scans_{name}.jpg", cjpeg(smooth(22, 23), "-scans", file.name))


def cjpeg(image, *options):
    run = subprocess.run(["cjpeg", *options], input=saved(image, "PPM"), capture_output=True, check=True)
    return run.stdout


def png(samples, depth, kind, interlaced, extra=b""):
    """A PNG of any bit depth, which Pillow cannot write."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def lines(samples):
        for line in samples.reshape(samples.shape[0], -1):
            bits = "".join(format(int(v), f"0{depth}b") for v in line)
            bits += "0" * (-len(bits) % 8)
            yield b"\0" + bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))

    adam7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    passes = [samples[y::dy, x::dx] for x, y, dx, dy in adam7] if interlaced else [samples]
    data = b"".join(line for part in passes if part.size for line in lines(part))
    height, width = samples.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced))
    parts = chunk(b"IHDR", header) + b"".join(chunk(*e) for e in extra) + chunk(b"IDAT", zlib.compress(data))
    return b"\x89PNG\r\n\x1a\n" + parts + chunk(b"IEND", b"")


def pngs():
    kinds = [(0, 1, "gray", (1, 2, 4, 8, 16)), (2, 3, "rgb", (8, 16)), (3, 1, "palette", (1, 2, 4, 8))]
    kinds += [(4, 2, "gray_alpha", (8, 16)), (6, 4, "rgba", (8, 16))]
    for kind, channels, name, depths in kinds:
        for i, depth in enumerate(depths):
            samples = rng.integers(0, 2**depth, (7, 11, channels))
            extra = []
            if kind == 3:
                extra = [(b"PLTE", rng.integers(0, 256, 3 * 2**depth, dtype=np.uint8).tobytes()), (b"tRNS", b"\0\x80")]
            keep(f"png_{name}_{depth}.png", png(samples, depth, kind, i % 2 == 1, extra))
    keep("png_interlaced.png", png(rng.integers(0, 256, (13, 10, 3)), 8, 2, True))
    keep("png_orientation_6.png", saved(smooth(5, 9), "PNG", exif=oriented(6)))
    frames = [smooth(6, 7) for _ in range(3)]
    keep("png_animated.png", saved(frames[0], "PNG", save_all=True, append_images=frames[1:]))


def others():
    picture = smooth(15, 22)
    rgba = picture.copy()
    rgba.putalpha(Image.fromarray(rng.integers(0, 256, (15, 22), dtype=np.uint8)))
    frames = [smooth(6, 7) for _ in range(3)]
    more = {"save_all": True, "append_images": frames[1:]}

    keep("webp_lossy.webp", saved(smooth(40, 35), "WEBP", quality=60))
    keep("webp_lossy_alpha.webp", saved(rgba, "WEBP", quality=60))
    keep("webp_lossless.webp", saved(picture, "WEBP", lossless=True))
    keep("webp_lossless_alpha.webp", saved(rgba, "WEBP", lossless=True, exact=True))
    keep("webp_orientation_8.webp", saved(smooth(5, 9), "WEBP", lossless=True, exif=oriented(8)))
    keep("webp_animated.webp", saved(frames[0], "WEBP", lossless=True, **more))

    palette = picture.quantize(40)
    keep("gif_plain.gif", saved(palette, "GIF", interlace=0))
    keep("gif_interlaced.gif", saved(palette, "GIF", interlace=1))
    keep("gif_animated.gif", saved(frames[0], "GIF", **more))
    for name, options in [("gif_transparent_inset", {"transparency": 7}), ("gif_inset", {})]:
        inset = bytearray(saved(smooth(6, 7).quantize(12), "GIF", **options))
        at = inset.find(b"\x2c\0\0\0\0")
        inset[6:10] = struct.pack("<HH", 12, 9)
        inset[at + 1 : at + 5] = struct.pack("<HH", 3, 2)
        keep(name + ".gif", bytes(inset))

    for mode in ["RGB", "L", "1", "P"]:
        keep(f"bmp_{mode.lower()}.bmp", saved(palette if mode == "P" else picture.convert(mode), "BMP"))
    keep("bmp_rgba.bmp", saved(rgba, "BMP"))
    small = smooth(6, 7)
    for mode in ["RGB", "L", "1", "CMYK"]:
        keep(f"tiff_{mode.lower()}.tif", saved(small.convert(mode), "TIFF"))
    for compression in ["tiff_lzw", "tiff_deflate", "packbits"]:
        keep(f"tiff_{compression.removeprefix('tiff_')}.tif", saved(small, "TIFF", compression=compression))
    keep("tiff_16.tif", saved(Image.fromarray(rng.integers(0, 65536, (5, 6), dtype=np.uint16)), "TIFF"))
    keep("tiff_orientation_5.tif", saved(smooth(5, 9), "TIFF", exif=oriented(5)))
    keep("tiff_pages.tif", saved(frames[0], "TIFF", **more))


def decoded():
    expected = {}
    for path in sorted(PICTURES.iterdir()):
        with Image.open(path) as image:
            if image.mode.startswith("I"):
                upper = (np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)
                expected[path.name] = np.ascontiguousarray(np.repeat(upper[..., None], 3, 2))
            else:
                expected[path.name] = np.ascontiguousarray(ImageOps.exif_transpose(image).convert("RGB"))
    save_file(expected, OUT / "decoded.safetensors")


def resized():
    modes = {"bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}
    sizes = [(8, 9), (25, 31), (16, 23), (19, 23), (16, 11), (1, 5), (3, 1), (40, 7)]
    stored = {}
    for height, width in [(16, 23), (1, 30), (2, 3)]:
        # Black and white overshoots most.
        source = np.where(rng.random((height, width, 3)) > 0.5, 255, rng.integers(0, 256, (height, width, 3)))
        source = source.astype(np.uint8)
        stored[f"source.{height}.{width}"] = source
        tensor = torch.from_numpy(source).permute(2, 0, 1).contiguous()
        for name, mode in modes.items():
            for out in sizes:
                result = functional.resize(tensor, list(out), interpolation=mode, antialias=True)
                key = f"resize.{name}.{height}.{width}.{out[0]}.{out[1]}"
                stored[key] = np.ascontiguousarray(result.permute(1, 2, 0).numpy())
    save_file(stored, OUT / "resized.safetensors")


def processed():
    stored, cases = {}, []
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    sources = [np.asarray(smooth(*size)) for size in [(37, 26), (20, 45), (9, 9)]]
    settings = [("shortest_edge", 18, 16, 16), ("shortest_edge", 19, 16, 16), ("shortest_edge", 14, 14, 14)]
    settings += [("shortest_edge", 20, 9, 17), ("shortest_edge", 7, 13, 10), ("shortest_edge", 10, 24, 9)]
    settings += [("squash", 0, 12, 12), ("squash", 0, 11, 15)]
    for n, source in enumerate(sources):
        stored[f"source.{n}"] = np.ascontiguousarray(source)
        for mode, short, height, width in settings:
            for filter, resample in [("bilinear", 2), ("bicubic", 3)]:
                crop = {"height": height, "width": width}
                if mode == "squash":
                    make, options = ViTImageProcessor, {"size": crop}
                else:
                    make, options = BitImageProcessor, {"size": {"shortest_edge": short}, "crop_size": crop}
                normalised = make(resample=resample, image_mean=mean, image_std=std, **options)
                raw = make(resample=resample, do_normalize=False, do_rescale=False, **options)
                run = lambda p: p(source, return_tensors="np", input_data_format="channels_last")["pixel_values"][0]
                name = f"{n}.{mode}.{short}.{height}.{width}.{filter}"
                stored[f"{name}.u8"] = np.ascontiguousarray(run(raw).transpose(1, 2, 0)).astype(np.uint8)
                if n == 0:  # normalising does not depend on the size
                    stored[f"{name}.f32"] = np.ascontiguousarray(run(normalised)).astype(np.float32)
                case = dict(name=name, source=n, mode=mode, short=short, height=height, width=width, filter=filter)
                cases.append(case)
    metadata = {"mean": json.dumps(mean), "std": json.dumps(std), "cases": json.dumps(cases)}
    save_file(stored, OUT / "processed.safetensors", metadata)


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    jpegs()
    pngs()
    others()
    decoded()
    resized()
    processed()
    for path in OUT.glob("*.safetensors"):
        path.chmod(0o644)
