"""PyTorch's side of `cargo xtask bench`: the encoder of one bundle, as plain as PyTorch code gets, timed on request.

    python torch_vit.py MODEL.gguf INPUT.npy --threads N [--precision bf16] [--tokens OUT.npy]

Reads a line from stdin, runs one pass and answers with its wall and its process CPU time in ms. `bf16` is the whole model cast. Needs torch, numpy
and gguf.
"""

import argparse
import os
import sys
import time

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("model")
arguments.add_argument("input")
arguments.add_argument("--threads", type=int, required=True)
arguments.add_argument("--precision", choices=["f32", "bf16"], default="f32")
arguments.add_argument("--tokens", help="write the tokens here, as f32")
args = arguments.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)

import gguf  # noqa: E402  (the number of threads is read when torch is loaded)
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

torch.set_num_threads(args.threads)
torch.set_grad_enabled(False)


class Block(nn.Module):
    """A pre-norm transformer block with fused projections and PyTorch's own attention."""

    def __init__(self, dim: int, heads: int, hidden: int, eps: float):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim, eps), nn.LayerNorm(dim, eps)
        self.attn_qkv, self.attn_out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ffn_up, self.ffn_down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.attn_qkv(self.ln1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = x + self.attn_out(y)
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ln2(x))))


class Encoder(nn.Module):
    """Patches, a position table, perhaps a CLS token, blocks, a norm."""

    def __init__(self, reader: gguf.GGUFReader):
        super().__init__()
        key = {name.removeprefix("jepa.enc."): field.contents() for name, field in reader.fields.items() if name.startswith("jepa.enc.")}
        stored = {tensor.name.removeprefix("enc."): torch.from_numpy(np.array(tensor.data)) for tensor in reader.tensors}
        dim, self.patch, self.tubelet = key["embed_dim"], key["patch_size"], key["tubelet_size"]
        self.patch_embed = nn.Linear(key["in_chans"] * self.tubelet * self.patch**2, dim)
        self.pos_embed = nn.Parameter(stored["pos_embed"])
        self.cls_token = nn.Parameter(stored["cls_token"]) if key["cls_token"] else None
        self.blk = nn.ModuleList(Block(dim, key["n_head"], key["ffn_dim"], key["ln_eps"]) for _ in range(key["n_layer"]))
        self.norm = nn.LayerNorm(dim, key["ln_eps"])
        self.load_state_dict(stored)

    def forward(self, pixels: Tensor) -> Tensor:
        if pixels.dim() == 4:
            pixels = pixels[:, :, None]
        b, c, frames, height, width = pixels.shape
        t, p = self.tubelet, self.patch
        x = pixels.view(b, c, frames // t, t, height // p, p, width // p, p).permute(0, 2, 4, 6, 1, 3, 5, 7)
        x = self.patch_embed(x.reshape(b, -1, c * t * p * p))
        if self.cls_token is not None:
            x = torch.cat([self.cls_token.expand(b, 1, -1), x], 1)
        x = x + self.pos_embed
        for block in self.blk:
            x = block(x)
        return self.norm(x)


dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[args.precision]
model = Encoder(gguf.GGUFReader(args.model)).eval().to(dtype)
pixels = torch.from_numpy(np.load(args.input)).to(dtype)
if args.tokens:
    np.save(args.tokens, model(pixels).float().numpy())

for _ in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    model(pixels)
    print((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3, flush=True)
