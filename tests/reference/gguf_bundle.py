"""One model bundle in memory, and its way into and out of a GGUF file.

A :class:`Bundle` holds the keys and the float32 tensors of a file. :func:`write` and :func:`read` go through the `gguf`
package, so that nothing here shares code with the reader and writer under test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

Key = bool | int | float | str | list[float] | list[int] | list[str]

#: `general.file_type` of the types written here (ggml's numbers).
FILE_TYPE = {Type.F32: 0, Type.F16: 1, Type.Q8_0: 7}

#: Ends of the names of the matrices a reduced file may store in a smaller type.
REDUCIBLE = ("attn_qkv", "attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down")

#: Families whose f16 files store the patch embedding as F16 too, as published files do.
F16_PATCH_EMBED = ("vjepa", "vjepa2", "vjepa2_1", "levjepa")


@dataclass
class Bundle:
    """Keys and tensors of one file, both in file order."""

    keys: dict[str, Key] = field(default_factory=dict)
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)

    def copy(self) -> Bundle:
        """A bundle that can be edited without touching this one; arrays are shared until replaced."""
        return Bundle(dict(self.keys), dict(self.tensors), dict(self.types))


def is_reducible(name: str) -> bool:
    """Whether the schema lets a file store tensor `name` in a type smaller than F32."""
    if not name.endswith(".weight"):
        return False
    stem = name.removesuffix(".weight")
    return (
        stem.rsplit(".", 1)[-1] in REDUCIBLE
        or stem.startswith(("pred.proj", "pred.embed", "enc.proj."))
        or stem in ("head.xattn.q", "head.xattn.k", "head.xattn.v", "head.cls")
    )


def stored_type(name: str, shape: tuple[int, ...], wanted: Type, family: str) -> Type:
    """The type tensor `name` gets in a file of type `wanted`; rows that do not fill q8_0 blocks fall back to F16."""
    patch_embed = name.startswith("enc.patch_embed") and name.endswith(".weight")
    if wanted == Type.F16 and patch_embed and family in F16_PATCH_EMBED:
        return Type.F16
    if wanted == Type.F32 or not is_reducible(name) or len(shape) != 2:
        return Type.F32
    if wanted == Type.Q8_0 and shape[-1] % 32 != 0:
        return Type.F16
    return wanted


def write(bundle: Bundle, path: Path, wanted: Type = Type.F32) -> None:
    """Writes `bundle` as a file of type `wanted`: little endian, alignment 32, keys and tensors in their order."""
    writer = gguf.GGUFWriter(path, "jepa")
    writer.add_uint32("general.file_type", FILE_TYPE[wanted])
    for name, value in bundle.keys.items():
        if name in ("general.architecture", "general.file_type"):
            continue
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        elif name.endswith("hier_layers"):
            writer.add_key_value(name, value, gguf.GGUFValueType.ARRAY, sub_type=gguf.GGUFValueType.UINT32)
        else:
            writer.add_array(name, value)
    for name, array in bundle.tensors.items():
        kind = stored_type(name, array.shape, wanted, str(bundle.keys["jepa.family"]))
        data = np.ascontiguousarray(array, dtype=np.float32)
        if kind == Type.F32:
            writer.add_tensor(name, data)
        elif kind == Type.F16:
            writer.add_tensor(name, data.astype(np.float16))
        else:
            writer.add_tensor(name, gguf.quants.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read(path: Path) -> Bundle:
    """Reads a file of any type gguf-py can decode; every tensor comes back as float32 in row-major shape."""
    reader = gguf.GGUFReader(path)
    keys = {name: f.contents() for name, f in reader.fields.items() if not name.startswith("GGUF.")}
    bundle = Bundle(keys)
    for tensor in reader.tensors:
        shape = tuple(int(n) for n in reversed(tensor.shape))
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        bundle.tensors[tensor.name] = np.array(values, dtype=np.float32).reshape(shape)
        bundle.types[tensor.name] = tensor.tensor_type
    return bundle


def edited(bundle: Bundle, keys: Mapping[str, Key]) -> Bundle:
    """A copy of `bundle` with some keys replaced or added."""
    out = bundle.copy()
    out.keys.update(keys)
    return out
