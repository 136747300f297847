"""Writes the small checkpoints of tests/data/ckpt-corners.tar.xz: python corner.py DIRECTORY (MindSpore 2.7.1, CPU)."""
import os
import sys

import numpy as np
import mindspore as ms
from mindspore import Parameter, Tensor

KEY = b"0123456789ABCDEFfedcba9876543210"  # 32 bytes; 16 of them for SM4
out = sys.argv[1]
os.makedirs(out, exist_ok=True)


def ramp(*shape):
    return (np.arange(np.prod(shape), dtype=np.float32) - 3).reshape(shape) / 4


def save(name, items, **options):
    ms.save_checkpoint([{"name": n, "data": Tensor(v) if isinstance(v, np.ndarray) else v} for n, v in items], os.path.join(out, name), **options)


items = [("dense.weight", ramp(3, 5)), ("dense.bias", ramp(5)), ("moments.dense.weight", ramp(3, 5) * 0), ("table", ramp(2, 2))]
types = [(t, np.array([0, 1, 2, 3], dtype=t)) for t in
         ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")]
types.append(("bfloat16", Tensor(np.array([0, 1, -2, 3.140625], np.float32), ms.bfloat16)))
types.append(("scalar", Tensor(2.5, ms.float32)))

save("plain.ckpt", items)
save("crc.ckpt", items, crc_check=True)
save("crc.safetensors", items, crc_check=True, format="safetensors")
save("types.ckpt", types)
save("types.safetensors", types, format="safetensors")
save("texts.ckpt", items, append_dict={"epoch_num": 3, "lr": 0.01, "note": "gr\u00fc\u00dfe", "done": True})
save("gcm.ckpt", items, enc_key=KEY, enc_mode="AES-GCM")
save("gcm16.ckpt", items, enc_key=KEY[:16], enc_mode="AES-GCM")
save("cbc.ckpt", items, enc_key=KEY, enc_mode="AES-CBC")
save("sm4.ckpt", items, enc_key=KEY[:16], enc_mode="SM4-CBC")
