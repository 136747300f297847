"""What the PyTorch trainings print at their end."""

import hashlib

import torch


def tell(losses, net):
    digest = hashlib.sha256()
    for tensor in net.state_dict().values():
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    print("losses", " ".join(float(loss).hex() for loss in losses))
    print("digest", digest.hexdigest())
