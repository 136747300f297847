"""Whether and what torch.compile compiles."""

import torch


def _never():
    return False


is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", _never)
_frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
# With None, what runs now is not compiled. Returns what compiled it until now.
set_compiler = getattr(_frames, "set_eval_frame", lambda compiler: None)
