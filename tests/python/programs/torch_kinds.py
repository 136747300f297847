"""PyTorch trainings with branches, with tensors of other kinds, and that call parts of a network
before they train it: torch_kinds.py CASE [broken]. Prints the losses and a digest."""

import sys

import results
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

case, broken = sys.argv[1], "broken" in sys.argv
torch.manual_seed(5)
torch.set_num_threads(1)
losses = []


def train(net, loss_of, steps=6):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(steps):
        loss = loss_of(step)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def two_places():
    """An operator that two lines call, each in some of the steps."""
    net = nn.Linear(3, 1)

    def loss_of(step):
        out = net(torch.randn(8, 3)).abs()
        if step == 4:
            return torch.log(out * 0 if broken else out + 2).mean()  # LINE two_places
        return torch.log(out + 1).mean()

    return train(net, loss_of)


def two_losses():
    """The same in the two steps of a GAN, in turn."""
    maker, critic = nn.Linear(2, 3), nn.Linear(3, 1)
    making = torch.optim.SGD(maker.parameters(), lr=0.01)
    judging = torch.optim.SGD(critic.parameters(), lr=0.01)
    for step in range(5):
        made = maker(torch.randn(8, 2)).detach()
        loss = (critic(torch.randn(8, 3)) - 1).pow(2).mean() + critic(made).pow(2).mean()
        judging.zero_grad()
        loss.backward()
        judging.step()
        made = maker(torch.randn(8, 2))
        if broken and step == 2:
            made = made * 1e20
        judged = (critic(made) - 1).pow(2).mean()  # LINE two_losses
        making.zero_grad()
        judged.backward()
        making.step()
        losses.extend((loss.item(), judged.item()))
    return critic


def main():
    kinds = (two_places, two_losses)
    net = next(each for each in kinds if each.__name__ == case)()
    results.tell(losses, net)


if __name__ == "__main__":
    main()
