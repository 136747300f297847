"""What the PyTorch trainings print at their end."""

import hashlib

import torch


def tell(losses, net):
    digest = hashlib.sha256()
    for tensor in net.state_dict().values():
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    print("losses", " ".join(float(loss).hex() for loss in losses))
    print("digest", digest.hexdigest())
