"""PyTorch trainings with branches, with tensors of other kinds, and that call parts of a network
before they train it: torch_kinds.py CASE [broken] [forked]. Prints the losses and a digest."""

import multiprocessing
import sys
import tempfile

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


def strided():
    """Nested tensors of the older layout, of which each row has a shape of its own."""
    net = nn.Linear(4, 2)

    def loss_of(step):
        x = torch.nested.nested_tensor([torch.randn(rows, 4) for rows in (2, 5, 3)])
        out = net(x).to_padded_tensor(0.0).abs()
        return torch.log(out * 0 if broken and step == 3 else out + 1).mean()  # LINE strided

    return train(net, loss_of)


class Named(torch.Tensor):
    """A class that changes functions, as libraries for images have them."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def subclass():
    """Data and a weight of such a class."""
    net = nn.Linear(3, 1)
    net.weight = nn.Parameter(net.weight.detach().as_subclass(Named))

    def loss_of(step):
        out = net(torch.randn(8, 3).as_subclass(Named)).abs()
        return torch.log(out * 0 if broken and step == 3 else out + 1).mean()  # LINE subclass

    return train(net, loss_of)


def jagged():
    """Attention over nested tensors, which it turns into those of the older layout."""
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))

    def loss_of(step):
        rows = [torch.randn(rows, 4) for rows in (2, 5, 3)]
        x = net[0](torch.nested.nested_tensor(rows, layout=torch.jagged))
        x = x.unflatten(-1, [2, 4]).transpose(1, 2)
        x = F.scaled_dot_product_attention(x, x, x).transpose(1, 2).flatten(-2).values()
        out = net[1](x).abs()
        return torch.log(out * 0 if broken and step == 3 else out + 1).mean()  # LINE jagged

    return train(net, loss_of)


def forward_mode():
    """Derivatives forward: those of constants are zeros without memory."""
    net = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1))

    def loss_of(step):
        x = torch.randn(6, 3)
        bent = torch.func.vmap(torch.func.hessian(lambda row: net(row).squeeze(-1)))(x)
        _, slope = torch.func.jvp(net, (x,), (torch.ones_like(x),))
        return (bent.sum((1, 2)) - x.sum(1)).square().mean() + slope.square().mean()

    return train(net, loss_of)


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixed = nn.Parameter(torch.randn(4, 4, dtype=torch.complex64) * 0.3)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        x = torch.fft.fft(x).conj() @ self.mixed
        return self.last(x.abs() + x.real)


def complexes():
    """A weight and operators of complex numbers; in the broken step the logarithm of 0, or
    ("gradient") a NaN in the imaginary part of a gradient."""
    net = Spectrum()

    def loss_of(step):
        out = net(torch.randn(8, 4))
        if broken and step == 3:
            if "gradient" in sys.argv:
                net.mixed.register_hook(lambda g: torch.complex(g.real, g.imag / (g.imag * 0)))
            else:
                out = out + torch.log(torch.fft.fft(out * 0)).real  # LINE complexes
        return out.pow(2).mean()

    return train(net, loss_of)


def assigned():
    """Gradients that the program puts together itself, in one of two ways."""
    net = nn.Linear(3, 1, bias=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        x = torch.randn(8, 3)
        out = net(x)
        near, far = (out - 1).square().mean(), (out - x).square().mean()
        if broken and step == 3:
            far = torch.sqrt(far * 0)  # LINE assigned
        (first,) = torch.autograd.grad(near, net.weight, retain_graph=True)
        (second,) = torch.autograd.grad(far, net.weight)
        if step % 2:
            net.weight.grad = first + second
        else:
            net.weight.grad = first * 0.5 + second
        optimizer.step()
        losses.extend((near.item(), far.item()))
    return net


def left_out():
    """An update is left out if its gradients are not finite, and the loss is; or ("early") the
    backward pass, too, if the loss is not."""
    net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(6):
        optimizer.zero_grad()
        loss = net(torch.randn(8, 6)).square().mean()
        if broken and step == 3:
            loss = loss + torch.sqrt(loss * 0)
            if "early" in sys.argv:
                loss = loss / 0
        losses.append(loss.item())
        if not torch.isfinite(loss):
            continue
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()
    return net


def crossed():
    """A loss that has bad gradients for another network, which takes them back at once."""
    nets = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
    first, second = (torch.optim.SGD(net.parameters(), lr=0.1) for net in nets)
    for _ in range(5):
        x = torch.randn(8, 3)
        loss = nets[0](x).square().mean() + torch.sqrt(nets[1].weight * 0).sum()
        other = nets[1](x).square().mean()
        first.zero_grad()
        loss.backward()
        second.zero_grad()
        other.backward()
        first.step()
        second.step()
        losses.extend((loss.item(), other.item()))
    return nets


class Sized(nn.Module):
    """Calls a part of itself to find the size of the next one."""

    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten())
        self.last = nn.Linear(self.front(torch.zeros(1, 1, 8, 8)).shape[1], 2)

    def forward(self, x):
        return self.last(self.front(x))


class Trainer:
    """Trains when it is made."""

    def __init__(self, net, shape):
        train(net, lambda step: net(torch.randn(8, *shape)).square().mean())


def sized():
    """The network is made, and another one that is not trained."""
    net, other = Sized(), Sized()
    other.load_state_dict(net.state_dict())
    Trainer(net, (1, 8, 8))
    return net


def parametrized():
    """Weights that other ones and a function make, which is called when the network is made."""
    net = nn.Sequential(spectral_norm(nn.Linear(4, 8)), nn.ReLU(), spectral_norm(nn.Linear(8, 1)))
    Trainer(net, (4,))
    return net


def faulty():
    """A fault of the agent with one operator, or ("often") with all."""
    agent = sys.modules.get("msdbg_agent.torch_agent.trace")
    if agent is not None:
        describe = agent.Trace._describe

        def fail(self, node, operator, *args):
            if operator.kind == "sin" or "often" in sys.argv:
                raise ValueError("a fault")
            describe(self, node, operator, *args)

        agent.Trace._describe = fail
    net = nn.Linear(3, 1)

    def loss_of(step):
        out = net(torch.randn(8, 3)).sin().abs()
        return torch.log(out * 0 if broken and step == 3 else out + 1).mean()  # LINE faulty

    return train(net, loss_of)


def rpc():
    """A layer in one thread of torch.distributed.rpc, and the updates in others."""
    from torch.distributed import autograd
    from torch.distributed import rpc as calls
    from torch.distributed.optim import DistributedOptimizer

    with tempfile.NamedTemporaryFile() as place:
        how = calls.TensorPipeRpcBackendOptions(init_method="file://" + place.name)
        calls.init_rpc("all", rank=0, world_size=1, rpc_backend_options=how)
        far, net = nn.Linear(3, 3), nn.Linear(3, 1)
        held = [calls.RRef(p) for each in (far, net) for p in each.parameters()]
        optimizer = DistributedOptimizer(torch.optim.SGD, held, lr=0.1)
        for step in range(6):
            with autograd.context() as number:
                out = net(calls.rpc_sync("all", far, (torch.randn(8, 3),))).abs()
                out = torch.log(out * 0 if broken and step == 3 else out + 1)  # LINE rpc
                autograd.backward(number, [out.mean()])
                optimizer.step(number)
                losses.append(out.mean().item())
        calls.shutdown()
    return nn.Sequential(far, net)


def main():
    kinds = (two_places, two_losses, strided, jagged, forward_mode, complexes, assigned, faulty)
    kinds += (subclass, left_out, crossed, sized, parametrized, rpc)
    net = next(each for each in kinds if each.__name__ == case)()
    results.tell(losses, net)


if __name__ == "__main__" and "forked" in sys.argv:
    trains = multiprocessing.get_context("fork").Process(target=main)
    trains.start()
    trains.join()
elif __name__ == "__main__":
    main()
