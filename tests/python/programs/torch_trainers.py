"""Unmodified PyTorch trainings as libraries over PyTorch run them: torch_trainers.py CASE [broken].
Prints the losses and a digest."""

import sys

import results
import torch
import torch.nn as nn
import torch.nn.functional as F

case, broken = sys.argv[1], "broken" in sys.argv
torch.manual_seed(5)
torch.set_num_threads(1)
losses = []


class Coder(nn.Module):
    """Its parts are called from another method than forward(), as in Lightning."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 12))

    def training_step(self, x, number):
        mean, spread = self.encoder(x).chunk(2, 1)
        if broken and number == 3:
            spread = torch.sqrt(spread)  # LINE closure
        found = self.decoder(mean + spread.exp() * torch.randn_like(mean))
        return F.mse_loss(found, x) - 0.1 * (1 + spread - mean**2 - spread.exp()).mean()


def closure():
    """The optimizer runs the network, as in Lightning."""
    net = Coder()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for number in range(5):
        x = torch.rand(8, 12)

        def run():
            loss = net.training_step(x, number)
            optimizer.zero_grad()
            loss.backward()
            return loss

        if number % 2:
            losses.append(optimizer.step(run).item())
        else:
            losses.append(optimizer.step(closure=run).item())
    return net


class Uncalled(nn.Module):
    """Modules that are not called as PyTorch's are, as in GPyTorch."""

    def __call__(self, *args):
        return self.forward(*args)


class Kernel(Uncalled):
    def __init__(self):
        super().__init__()
        self.raw_length = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return torch.exp(-torch.cdist(x, x) ** 2 / F.softplus(self.raw_length))


class Process(Uncalled):
    def __init__(self):
        super().__init__()
        self.kernel = Kernel()
        self.noise = nn.Parameter(torch.tensor(-1.0))

    def forward(self, x, y):
        cover = self.kernel(x) + F.softplus(self.noise) * torch.eye(len(x))
        return y @ torch.linalg.solve(cover, y) + torch.logdet(cover)


def uncalled():
    net = Process()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    x = torch.linspace(0, 1, 10)[:, None]
    for _ in range(5):
        optimizer.zero_grad()
        loss = net(x, torch.sin(6 * x[:, 0]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


def symbols():
    """The network is called for its shapes first, as Keras does."""
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    with torch.device("meta"):
        shapes = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
        assert shapes(torch.ones(8, 6)).shape == (8, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(torch.randn(8, 6)), torch.randint(0, 3, (8,)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


class Adapted(nn.Module):
    """A layer that is kept, and a product of two thin ones, of which the second begins as zeros: LoRA."""

    def __init__(self, size):
        super().__init__()
        self.base = nn.Linear(size, size).requires_grad_(False)
        self.lora_A = nn.Linear(size, 2, bias=False)
        self.lora_B = nn.Linear(2, size, bias=False)
        nn.init.zeros_(self.lora_B.weight)
        if broken:
            nn.init.zeros_(self.lora_A.weight)

    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(x))


class Residual(nn.Module):
    """Adds nothing at first."""

    def __init__(self, size):
        super().__init__()
        self.adapted, self.last = Adapted(size), nn.LayerNorm(size)
        nn.init.zeros_(self.last.weight)

    def forward(self, x):
        return x + self.last(torch.relu(self.adapted(x)))


def flipped(nan=False):
    """Faulty memory changes an exponent of a weight between two steps, or makes it NaN."""
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for number in range(5):
        if number == 3:
            with torch.no_grad():
                net[0].weight.view(torch.int32)[0, 0] ^= 1 << 30
                if nan:
                    net[0].weight[0, 0] = float("nan")
        optimizer.zero_grad()
        loss = F.cross_entropy(net(torch.randn(5, 8)), torch.randint(0, 4, (5,)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


def poisoned():
    return flipped(True)


def zeros():
    """Begins with zeros on purpose, and with a rate of 0."""
    net = nn.Sequential(Adapted(6), Residual(6), nn.Linear(6, 3))
    optimizer = torch.optim.AdamW([each for each in net.parameters() if each.requires_grad], lr=0.01)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step / 2))
    for _ in range(8):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(torch.randn(8, 6)), torch.randint(0, 3, (8,)))
        loss.backward()
        optimizer.step()
        rates.step()
        losses.append(loss.item())
    return net


if __name__ == "__main__":
    cases = (closure, uncalled, symbols, flipped, poisoned, zeros)
    results.tell(losses, {each.__name__: each for each in cases}[case]())
