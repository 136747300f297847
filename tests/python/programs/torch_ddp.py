"""One of two ranks of a distributed training on gloo: RANK is its number, STORE a file where the ranks meet.
With DEVICE=cuda, both have the first GPU; NCCL, one rank alone.
torch_ddp.py replicas|in_buckets|fully_shard|fsdp|tensor_parallel|pipeline [nccl] [broken] [flipped] [lost] [large] [squared]
broken: the last rank computes NaN in step 3. Behind step 2, in a weight of rank 1 or its shard: flipped: a bit changes; lost: a value
becomes NaN; large: a value becomes 1e30; squared: a value becomes 1e18, and only the squares of gradients overflow.
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
    if kind == "in_buckets":
        return nn.parallel.DistributedDataParallel(
            net, gradient_as_bucket_view=True, static_graph=True
        )
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


class Pipeline:
    """Each rank has a stage of the network, and gives it half of a batch at a time."""

    def __init__(self, net, rank, count):
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

        layers = list(net)
        self.stage = nn.Sequential(*(layers[:2] if rank == 0 else layers[2:]))
        self.first, self.last = rank == 0, rank == count - 1
        self.schedule = ScheduleGPipe(
            PipelineStage(self.stage, rank, count, torch.device(DEVICE)), 2, loss_fn=self.loss
        )

    def parameters(self):
        return self.stage.parameters()

    @staticmethod
    def loss(out, target):
        return (out**2).mean()

    def step(self, batch):
        losses = []
        self.schedule.step(
            *([batch] if self.first else []),
            target=batch if self.last else None,
            losses=losses if self.last else None,
        )
        seen = losses or [each.grad.norm() for each in self.parameters()]
        return sum(each.item() for each in seen)


def spoil(weight):
    """What happens to a weight behind step 2."""
    with torch.no_grad():
        weight = weight.to_local() if hasattr(weight, "to_local") else weight
        if "flipped" in sys.argv:
            weight.view(torch.int32)[3, 5] ^= 1 << 23
        if "lost" in sys.argv:
            weight[1, 5] = float("nan")
        if "large" in sys.argv:
            weight[1, 5] = 1e30
        if "squared" in sys.argv:
            weight[1, 5] = 1e18


def main():
    kind = sys.argv[1]
    rank = int(os.environ["RANK"])
    store = "file://" + os.environ["STORE"]
    backend, count = ("nccl", 1) if "nccl" in sys.argv else ("gloo", 2)
    dist.init_process_group(backend, init_method=store, rank=rank, world_size=count)
    torch.manual_seed(3)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(DEVICE)
    pipeline = kind == "pipeline"
    model = Pipeline(net, rank, count) if pipeline else distributed(net, kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    same = kind in ("tensor_parallel", "pipeline")
    numbers = torch.Generator().manual_seed(0 if same else rank)
    losses = []
    for step in range(5):
        batch = torch.randn(4, 8, generator=numbers).to(DEVICE)
        if pipeline:
            optimizer.zero_grad()
            losses.append(model.step(batch))
            optimizer.step()
            if step == 2 and rank == 1:
                spoil(net[2].weight)
            continue
        out = model(batch)
        if "broken" in sys.argv and step == 3 and rank == count - 1:
            out = torch.sqrt(out - 100)  # LINE ranks
        loss = (out**2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 2 and rank == 1:
            spoil(net[0].weight)
        losses.append(loss.item())
    print("losses of rank", rank, *(each.hex() for each in losses), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
