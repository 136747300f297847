"""Unmodified PyTorch trainings that change values in place, or go on behind exceptions, for the
end-to-end tests: torch_changes.py CASE [broken]. Prints the losses and a digest."""

import copy
import sys

import results
import torch
import torch.nn as nn

case, broken = sys.argv[1], "broken" in sys.argv
torch.manual_seed(5)
torch.set_num_threads(1)
losses = []


class Counted(nn.Module):
    """Notes how many global hooks there are while it runs, and fails where it is told to."""

    def __init__(self):
        super().__init__()
        self.inner, self.fault, self.hooks = nn.Linear(6, 4), None, []
        self.copy = None

    def forward(self, x):
        out = self.inner(x)
        self.hooks.append(len(nn.modules.module._global_forward_pre_hooks))
        if self.fault is not None:
            raise self.fault
        if self.copy is None and len(losses) == 6:
            self.copy = [copy.deepcopy(self)]
        return out


def hooks():
    """A network that raises exceptions, in a loop that goes on."""
    net = Counted()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if "own" in sys.argv:
        net.register_forward_hook(lambda module, args, out: out * 2)
    for step in range(12):
        fault = {4: ValueError(), 6: KeyboardInterrupt(), 8: ValueError()}.get(step)
        if fault is not None:
            net.fault = fault
            try:
                net(torch.zeros(8, 6))
            except (ValueError, KeyboardInterrupt):
                net.fault = None
        optimizer.zero_grad()
        loss = net(torch.randn(8, 6)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        assert len(net._forward_hooks) == ("own" in sys.argv), (step, net._forward_hooks)
    copied = net.copy[0]
    losses.append(copied(torch.ones(1, 6)).sum().item())
    print("HOOKS", net.hooks)
    return net


def views():
    """Views of a value, and again when a part of it was changed in place. In one step the numbers
    of operators change between the one that makes a value and the end, when its view is told."""
    net = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        out = net(torch.randn(8, 6))
        if step == 4:
            out = out.tanh().neg()
        with torch.no_grad():
            last = out.detach().chunk(4, 1)[3].transpose(0, 1)
            before = out.t().reshape(-1)
            out[2:4] *= torch.inf if broken and step == 3 else 0.5  # LINE views
            after = out.t().view(4, 8)
        loss = out.pow(2).mean() if not broken or step != 3 else net.weight.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.extend((loss.item(), before.sum().item(), after.nan_to_num(1, 1, 1).sum().item()))
        losses.append(last.sum().item())
    return net


class Whitening(nn.Linear):
    """Changes what it is given: first all of it, then a part."""

    def forward(self, x):
        x -= x.mean(0)
        x[:, 2] /= 0 if broken and len(losses) == 3 else 2  # LINE parts
        return super().forward(x)


def parts():
    net = Whitening(6, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(6):
        loss = net(torch.randn(8, 6)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


class Residual(nn.Module):
    """Begins as if its branch was not there, as residual networks do."""

    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 6))
        self.gain, self.head = nn.Parameter(torch.zeros(1)), nn.Linear(6, 4)

    def forward(self, x):
        return self.head(x + self.gain * self.branch(x))


def gains():
    """A rate that warms up. Broken: the branch never counts."""
    net = Residual()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
    for step in range(8):
        loss = net(torch.randn(8, 6)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        if broken:
            net.gain.grad.mul_(1e-15)
        optimizer.step()
        losses.append(loss.item())
    return net


if __name__ == "__main__":
    net = next(each for each in (views, parts, hooks, gains) if each.__name__ == case)()
    results.tell(losses, net)
