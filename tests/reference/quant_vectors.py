"""Makes the test vectors of the block formats: crates/jepa-gguf/tests/fixtures/quant/<type>.{blocks,values}.

Random blocks with sane scales, and what gguf-py makes of them, little endian. Run from the repository's root:

    python tests/reference/quant_vectors.py

Made with Python 3.11, numpy 2.4.6, gguf 0.19.0.
"""

from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

OUT = Path("crates/jepa-gguf/tests/fixtures/quant")
# Where the f16 scales of a block stand, in bytes.
SCALES = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
}
BLOCKS = 6


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20)
    for kind, scales in SCALES.items():
        _, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
        for at in scales:
            # One block each with a zero, a subnormal and a negative scale; random bits would often be infinite.
            value = rng.normal(0, 0.1, BLOCKS).astype(np.float16)
            value[0], value[1], value[2] = 0, 3e-7, -abs(value[2])
            blocks[:, at : at + 2] = value.view(np.uint8).reshape(BLOCKS, 2)
        save(kind, blocks.tobytes(), gguf.dequantize(blocks, kind))
    halves = np.concatenate([np.array([0, 0x8000, 1, 0x83FF, 0x7BFF, 0x7C00, 0xFC00], np.uint16), rng.integers(0, 0x7C00, 50, np.uint16)])
    save(T.F16, halves.tobytes(), halves.view(np.float16).astype(np.float32))
    upper = np.concatenate([np.array([0, 0x8000, 1, 0x7F7F, 0x7F80], np.uint16), rng.integers(0, 0x7F80, 50, np.uint16)])
    save(T.BF16, upper.tobytes(), gguf.dequantize(upper.view(np.uint8), T.BF16))


def save(kind: T, blocks: bytes, values: np.ndarray) -> None:
    name = kind.name.lower()
    (OUT / f"{name}.blocks").write_bytes(blocks)
    (OUT / f"{name}.values").write_bytes(values.astype("<f4").tobytes())


if __name__ == "__main__":
    main()
