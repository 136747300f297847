"""A PyTorch training without an optimizer, its steps told by hand: torch_steps.py [session] [log0].
Prints the losses."""

import contextlib
import os
import sys

import torch

sys.path.append(os.path.join(os.path.dirname(__file__), "../../../python"))
import msdbg_agent  # noqa: E402 - does nothing without a debugger

torch.manual_seed(3)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
if "session" in sys.argv:
    followed = msdbg_agent.session(net, steps="manual")
else:
    followed = contextlib.nullcontext()

losses = []
with followed:
    for step in range(6):
        msdbg_agent.step_begin(net)
        x = torch.randn(16, 8)
        total = torch.zeros(())
        for part in x.split(8):  # two passes in a step
            out = torch.sigmoid(net(part))
            if "log0" in sys.argv and step == 3:
                out = out * 0.0
            loss = -torch.log(out).mean()  # LINE log0
            loss.backward()
            total = total + loss.detach()
        with torch.no_grad():
            for weight in net.parameters():
                weight -= 0.05 * weight.grad
                weight.grad = None
        msdbg_agent.step_end()
        losses.append(total.item())
print("losses", " ".join(loss.hex() for loss in losses))
