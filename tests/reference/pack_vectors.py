"""Makes the test vectors of packing: what ggml's own quantiser makes of given values, with and without column weights.

Usage: python tests/reference/pack_vectors.py LIBRARY [FOLDER] [ROWS]

LIBRARY is ggml's `src/ggml-quants.c` as a shared library, built as its base library is, without instruction sets beyond the compiler's baseline:

    gcc -O3 -DNDEBUG -fPIC -shared -I include -I src src/ggml-quants.c stubs.c -o libgq.so -lm

where stubs.c defines ggml_abort, ggml_type_name, ggml_type_size and ggml_row_size for these types.

FOLDER (default: crates/jepa-gguf/tests/fixtures/pack) gets `values.f32`, `importance.f32`, and per type `<type>.plain` and `<type>.weighted`.
More ROWS than the committed ones go to a folder of your own, which the test replays when JEPA_PACK_VECTORS names it.

Made with Python 3.11, numpy 2.4.6, ggml d99724f2, gcc 12.2.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np

# Blocks of 32 and of 256 values alike: two of the large ones.
ROW = 512
TYPES = {
    "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "q8_0": (32, 34),
    "q2_K": (256, 84), "q3_K": (256, 110), "q4_K": (256, 144), "q5_K": (256, 176), "q6_K": (256, 210),
}


def values(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of weights as models have them, and rows that are none."""
    x = (rng.normal(0, 0.02, (rows, ROW)) * rng.choice([1, 1, 1, 30, 1e-3], (rows, 1))).astype(np.float32)
    kinds = [
        lambda r: np.zeros(ROW),
        lambda r: np.full(ROW, 0.125),
        lambda r: np.full(ROW, -3.0),
        lambda r: np.where(np.arange(ROW) % 256 == 7, -5.0, r * 1e-4),
        lambda r: np.abs(r),
        lambda r: -np.abs(r),
        lambda r: r * 1e-20,
        lambda r: r * 1e-38,
        lambda r: r * 1e6,
        lambda r: np.sign(r),
        lambda r: np.round(r * 200) / 200,
        lambda r: 10.0 + r,
        lambda r: rng.standard_t(1.5, ROW) * 0.01,
        lambda r: np.where(np.arange(ROW) % 64 < 32, 0, r),
        lambda r: r * np.repeat(10.0 ** rng.uniform(-6, 2, ROW // 16), 16),
    ]
    for i in range(rows // 2):
        x[2 * i] = kinds[i % len(kinds)](x[2 * i])
    return x


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "crates/jepa-gguf/tests/fixtures/pack")
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(21)
    x = values(rows, rng)
    importance = (rng.normal(0, 1, ROW) ** 2 * 10.0 ** rng.uniform(-2, 2, ROW)).astype(np.float32)
    x.tofile(folder / "values.f32")
    importance.tofile(folder / "importance.f32")
    for name, (block, size) in TYPES.items():
        quantize = getattr(library, f"quantize_{name}")
        quantize.restype = ctypes.c_size_t
        for suffix, weights in (("plain", None), ("weighted", importance.ctypes.data_as(ctypes.c_void_p))):
            out = np.zeros(rows * ROW // block * size, np.uint8)
            pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (x, out)]
            written = quantize(*pointers, ctypes.c_int64(rows), ctypes.c_int64(ROW), weights)
            assert written == out.size, name
            out.tofile(folder / f"{name.lower()}.{suffix}")


if __name__ == "__main__":
    main()
