"""What the trainings print at their end."""

import hashlib


def tell(losses, net):
    """Of a PyTorch network."""
    import torch

    flat = [each.detach().cpu().contiguous().reshape(-1) for each in net.state_dict().values()]
    tell_bytes(losses, [each.view(torch.uint8).numpy().tobytes() for each in flat])


def tell_bytes(losses, contents):
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    print("losses", " ".join(float(loss).hex() for loss in losses))
    print("digest", digest.hexdigest())
