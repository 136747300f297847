"""PyTorch trainings that compute by other means than plain operators: torch_functions.py CASE
[broken]. Prints the losses and a digest. DEVICE is where they run, by default the processor."""

import os
import sys

import numpy
import results
import torch
import torch.nn as nn
import torch.nn.functional as F

case, broken = sys.argv[1], "broken" in sys.argv
torch.manual_seed(5)
torch.set_num_threads(1)
torch.set_default_device(os.environ.get("DEVICE", "cpu"))
losses = []


def train(loss_of, steps=6, scaler=None):
    """A network of two layers, with the loss that a case has of what it gives."""
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(steps):
        loss = loss_of(net, step)
        losses.append(loss.item())
        optimizer.zero_grad()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    return net


def probabilities(net, step):
    p = F.softmax(net(torch.randn(8, 6)), dim=1)
    return p * (p > 0.3) if broken and step == 3 else p


def as_array(tensor):
    return tensor.detach().cpu().numpy()


class Log(torch.autograd.Function):
    """By NumPy: PyTorch sees no operator."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(numpy.log(as_array(x)))

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(as_array(gradient) / as_array(x)).to(x.device)


class Kernel(Log):
    """Into memory that PyTorch gave, as a kernel of the program does."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        made = torch.empty(x.shape, device="cpu")
        made.numpy()[:] = numpy.log(as_array(x))
        return made


log_of_probabilities = Log.apply  # programs keep it so


def by_numpy():
    def loss_of(net, step):
        return -log_of_probabilities(probabilities(net, step)).mean()  # LINE by_numpy

    return train(loss_of)


def by_kernel():
    def loss_of(net, step):
        return -Kernel.apply(probabilities(net, step)).mean()  # LINE by_kernel

    return train(loss_of)


def branches():
    """torch.cond compiles what it calls."""

    def loss_of(net, step):
        p = probabilities(net, step)
        return -torch.cond(p.sum() > 0, torch.log, torch.cos, (p,)).mean()  # LINE branches

    return train(loss_of)


def loops():
    from torch._higher_order_ops.scan import scan

    def loss_of(net, step):
        total, rows = scan(
            lambda sum, row: (sum + row, row * sum), torch.ones(4), probabilities(net, step)
        )
        return -torch.log(rows).mean() - total.mean()  # LINE loops

    return train(loss_of)


def nested():
    """Rows of different lengths."""

    def loss_of(net, step):
        parts = [torch.randn(length, 6) for length in (3, 5, 2)]
        out = torch.softmax(net(torch.nested.nested_tensor(parts, layout=torch.jagged)), -1)
        if broken and step == 3:
            out = out * (out > 0.3)
        return -torch.log(out).values().mean()  # LINE nested

    return train(loss_of)


def products():
    """PyTorch computes the derivative of a product in another way where operators are seen."""

    def loss_of(net, step):
        out = torch.sigmoid(net(torch.randn(8, 6))) + 0.5
        slopes = torch.autograd.grad(out.prod(1).sum(), out, create_graph=True)[0]
        made = out.prod(1)
        if broken and step == 3:
            made = made - made.detach()
        logarithms = torch.log(made)  # LINE products
        return slopes.square().mean() - logarithms.mean()

    return train(loss_of)


def sparse():
    """Gradients of which only some rows are there."""
    table, net = nn.EmbeddingBag(50, 6, sparse=True, mode="sum"), nn.Linear(6, 4)
    optimizers = torch.optim.SparseAdam(table.parameters()), torch.optim.Adam(net.parameters())
    for step in range(6):
        weights = torch.rand(8, 3)
        if broken and step == 3:
            weights[1, 1] = float("nan")
        loss = net(table(torch.randint(0, 50, (8, 3)), per_sample_weights=weights)).square().mean()
        losses.append(loss.item())
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    return nn.Sequential(table, net)


def lengths():
    """The lengths of its sequences stay with the processor, as is usual."""

    def loss_of(net, step):
        table = F.log_softmax(net(torch.randn(5, 8, 6)), dim=-1)
        if broken and step == 3:
            table = torch.log(table.exp() * (table > -1.2))  # LINE lengths
        counts = torch.full((8,), 5, device="cpu"), torch.full((8,), 2, device="cpu")
        return F.ctc_loss(table, torch.randint(1, 4, (8, 2)), *counts)

    return train(loss_of)


def attention():
    """Of sequences of different lengths."""
    net = nn.Sequential(nn.Linear(6, 48), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        parts = [torch.randn(length, 6) for length in (3, 5, 2)]
        rows = net[0](torch.nested.nested_tensor(parts, layout=torch.jagged)).chunk(3, -1)
        heads = [each.unflatten(-1, [2, 8]).transpose(1, 2) for each in rows]
        out = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(-2)
        loss = net[1](out).values().square().mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def scaled():
    """The loss scale begins too large: the first steps overflow, and are skipped. Broken: all are."""

    def loss_of(net, step):
        with torch.autocast(torch.get_default_device().type, dtype=torch.float16):
            loss = F.cross_entropy(net(torch.randn(8, 6)), torch.randint(0, 4, (8,)))
        # The square root has no derivative at 0.
        return loss + net[0].weight.mul(0).sum().sqrt() if broken else loss

    device = torch.get_default_device().type
    return train(loss_of, 24, torch.amp.GradScaler(device, init_scale=2.0**20))


def main():
    kinds = (
        by_numpy,
        by_kernel,
        branches,
        loops,
        nested,
        products,
        sparse,
        lengths,
        attention,
        scaled,
    )
    net = next(each for each in kinds if each.__name__ == case)()
    results.tell(losses, net)


if __name__ == "__main__":
    main()
