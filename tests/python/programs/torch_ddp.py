"""One of two ranks of a distributed training on gloo: RANK is its number, STORE a file where the ranks meet.
With DEVICE=cuda, both have the first GPU; NCCL, one rank alone.
torch_ddp.py replicas|fully_shard|fsdp|tensor_parallel [nccl] [broken] [flipped]
broken: the last rank computes NaN in step 3. flipped: a bit of a weight of rank 1 changes behind step 2.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn

DEVICE = "cuda:0" if os.environ.get("DEVICE") == "cuda" else "cpu"


def distributed(net, kind):
    if kind == "replicas":
        return nn.parallel.DistributedDataParallel(net)
    if kind == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(net, device_id=torch.device(DEVICE))
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh(DEVICE.partition(":")[0], (dist.get_world_size(),))
    if kind == "fully_shard":
        from torch.distributed.fsdp import fully_shard

        for layer in (net[0], net[2]):
            fully_shard(layer, mesh=mesh)
        return fully_shard(net, mesh=mesh)
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    return parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def main():
    kind = sys.argv[1]
    rank = int(os.environ["RANK"])
    store = "file://" + os.environ["STORE"]
    backend, count = ("nccl", 1) if "nccl" in sys.argv else ("gloo", 2)
    dist.init_process_group(backend, init_method=store, rank=rank, world_size=count)
    torch.manual_seed(3)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(DEVICE)
    model = distributed(net, kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    numbers = torch.Generator().manual_seed(0 if kind == "tensor_parallel" else rank)
    losses = []
    for step in range(5):
        out = model(torch.randn(4, 8, generator=numbers).to(DEVICE))
        if "broken" in sys.argv and step == 3 and rank == count - 1:
            out = torch.sqrt(out - 100)  # LINE ranks
        loss = (out**2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if "flipped" in sys.argv and step == 2 and rank == 1:
            with torch.no_grad():
                net[0].weight.view(torch.int32)[3, 5] ^= 1 << 23
        losses.append(loss.item())
    print("losses of rank", rank, *(each.hex() for each in losses), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
