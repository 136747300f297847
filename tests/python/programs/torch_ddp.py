"""One rank of a data-parallel training on gloo: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them."""

import torch
import torch.distributed as dist
import torch.nn as nn


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    numbers = torch.Generator().manual_seed(rank)
    losses = []
    for _ in range(5):
        loss = (model(torch.randn(4, 8, generator=numbers)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("losses of rank", rank, *(each.hex() for each in losses), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
