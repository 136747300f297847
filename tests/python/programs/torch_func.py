"""A PyTorch training by torch.func, without backward() and an optimizer: torch_func.py [marked]
[root]. Prints the losses."""

import os
import sys

import torch
from torch.func import functional_call, grad_and_value

sys.path.append(os.path.join(os.path.dirname(__file__), "../../../python"))
import msdbg_agent  # noqa: E402 - does nothing without a debugger

torch.manual_seed(3)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.GELU(), torch.nn.Linear(12, 1))
weights = {name: weight.detach().clone() for name, weight in net.named_parameters()}
marked = "marked" in sys.argv


def loss_of(weights, x, y, step):
    distance = (functional_call(net, weights, (x,)) - y).square().mean()
    if "root" in sys.argv and step == 3:
        distance = distance - 100
    return torch.sqrt(distance)  # LINE root


losses = []
for step in range(6):
    if marked:
        msdbg_agent.step_begin()
    gradients, loss = grad_and_value(loss_of)(weights, torch.randn(8, 6), torch.randn(8, 1), step)
    weights = {name: weight - 0.01 * gradients[name] for name, weight in weights.items()}
    if marked:
        msdbg_agent.step_end()
    losses.append(loss.item())
print("losses", " ".join(loss.hex() for loss in losses))
