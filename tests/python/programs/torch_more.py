"""Unmodified PyTorch trainings of other kinds for the end-to-end tests: torch_more.py CASE
[broken]. Prints the losses and a digest. DEVICE is where they run, by default the processor."""

import ctypes
import gc
import os
import sys
import threading
import weakref

import results
import torch
import torch.nn as nn
import torch.nn.functional as F

case, broken = sys.argv[1], "broken" in sys.argv
torch.manual_seed(5)
torch.set_num_threads(1)
torch.set_default_device(os.environ.get("DEVICE", "cpu"))
losses = []


def eval_mode():
    """A network that is trained in evaluation mode."""
    net = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, 3)).eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        p = net(torch.randn(8, 6)).softmax(1)
        if broken and step == 4:
            p = p - p
        loss = F.nll_loss(torch.log(p), torch.randint(0, 3, (8,)))  # LINE eval_mode
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


def by_hand():
    """The program changes the parameters itself."""
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    for step in range(6):
        out = net(torch.randn(8, 6))
        if broken and step == 3:
            out = (out.half() * 60000 * 60000).float()  # LINE by_hand
        loss = F.cross_entropy(out, torch.randint(0, 3, (8,)))
        net.zero_grad()
        loss.backward()
        for parameter in net.parameters():
            parameter.data -= 0.1 * parameter.grad
        losses.append(loss.item())
        with torch.no_grad():
            losses.append(net.eval()(torch.ones(1, 6)).sum().item())
        net.train()
    return net


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        if broken and len(losses) == 3:
            gradient = gradient / (gradient - gradient)  # LINE own_backward
        return gradient * 2


def own_backward():
    """A function with a backward pass of its own; one optimizer for each parameter, which runs
    within the backward pass."""
    net = nn.Sequential(nn.Linear(6, 16), nn.Linear(16, 3))
    optimizers = {each: torch.optim.Adam([each], lr=1e-3) for each in net.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for _ in range(6):
        loss = net[1](Rounded.apply(net[0](torch.randn(8, 6)))).square().mean()
        loss.backward()
        losses.append(loss.item())
    return net


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("least", torch.tensor(float("inf")))
        self.register_buffer("most", torch.full((8,), float("-inf")))

    def forward(self, x, warmth):
        rows = torch.empty(x.shape[0], 8)  # NaN, because of use_deterministic_algorithms
        for place, each in enumerate(x):
            rows[place] = F.dropout(self.inner(each), 0.2)
        with torch.no_grad():
            self.least.copy_(torch.minimum(self.least, rows.min()))
            self.most.copy_(torch.maximum(self.most, rows.amax(0)))
        x = F.normalize(nn.ReLU()(self.norm(rows)) + 0.1)
        shares = x @ x.T / warmth
        shares.fill_diagonal_(float("-inf"))
        return shares


class Failing(torch.optim.SGD):
    def step(self, closure=None):
        if len(losses) == 1:
            losses.append(0.0)
            raise ValueError("this step is left out")
        return super().step(closure)


def folds():
    """A network and a criterion that are made anew, memory that is written row by row, a mask that
    is written through a view, and limits that begin as infinities."""
    torch.use_deterministic_algorithms(True)
    made = []
    for _ in range(3):
        net = Contrast()
        warmth = nn.Parameter(torch.tensor(0.5))
        made.append(weakref.ref(net))
        optimizer = Failing([*net.parameters(), warmth], lr=0.05)
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.CrossEntropyLoss()(net(torch.randn(4, 6), warmth), torch.arange(4).flip(0))
            loss.backward()
            try:
                optimizer.step()
            except ValueError:
                continue
            losses.append(loss.item())
    gc.collect()
    losses.append(sum(each() is not None for each in made))
    return net


def gan():
    """Two networks and two optimizers. The second network is first called in an open step, and the
    gradient of its last bias is zero."""
    maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
    critic = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    making = torch.optim.Adam(maker.parameters(), lr=1e-2)
    judging = torch.optim.RMSprop(critic.parameters(), lr=1e-2)
    for _ in range(4):
        judging.zero_grad()
        loss = critic(maker(torch.randn(8, 4)).detach()).mean() - critic(torch.randn(8, 6)).mean()
        loss.backward()
        judging.step()
        making.zero_grad()
        judged = -critic(maker(torch.randn(8, 4))).mean()
        judged.backward()
        making.step()
        losses.extend((loss.item(), judged.item()))
    return critic


def broken_critic():
    """A weight of the second network is broken before a step of the first, whose optimizer leaves
    it as it is."""
    maker, critic = nn.Conv1d(4, 6, 3), nn.Sequential(nn.Conv1d(6, 16, 3), nn.Tanh())
    making = torch.optim.Adam(maker.parameters(), lr=1e-2)
    judging = torch.optim.RMSprop(critic.parameters(), lr=1e-2)
    for k in range(4):
        if k == 2:
            critic[0].weight.data[3, 2] = 3e38
        making.zero_grad()
        (-critic(maker(torch.randn(8, 4, 9)))).mean().backward()
        making.step()
        judging.zero_grad()
        made = maker(torch.randn(8, 4, 9)).detach()
        (critic(made) - critic(torch.randn(8, 6, 7))).mean().backward()
        judging.step()
    return critic


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(12, 5)

    def forward(self, x):
        for _ in range(2):
            x = x * torch.sigmoid(x)
        return self.last(x)


def translated():
    """Parts in TorchScript, one of them traced, and CTC. A network is translated in the midst of a
    step, and another mode counts operations."""
    from torch.utils.flop_counter import FlopCounterMode

    front = nn.Sequential(nn.Linear(6, 12), nn.Tanh()).train()
    front = torch.jit.trace(front, torch.randn(9, 4, 6))
    net = nn.Sequential(front, torch.jit.script(Scripted()))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(6):
        x = torch.randn(9, 4, 6)
        if broken and step == 3:
            x[2, 1, 3] = float("nan")
        sizes = torch.full((4,), 9)
        labels = torch.randint(1, 5, (4, 3))
        with FlopCounterMode(display=False):
            out = net(x).log_softmax(-1)
        spoilt = torch.empty(4, 9, 7, device="cpu")  # ctc_loss leaves a part of its table unwritten
        ctypes.memset(spoilt.data_ptr(), 255, spoilt.nbytes)
        del spoilt
        loss = F.ctc_loss(out, labels, sizes, torch.tensor([3, 1, 2, 3]))
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        if step == 1:
            torch.jit.trace(nn.Linear(3, 2).train(), torch.randn(5, 3))
        optimizer.step()
    return net


def compiled():
    """A compiled function that calls a network, and a compiled step of the optimizer; or
    ("inplace") a network that compile() has changed; or ("whole") one compiled function for all of
    a step."""
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=True)  # as if compiled

    def loss_of(x, wrong):
        p = torch.softmax(net(x), -1)
        if wrong:
            p = p * (p > 0.4)
        return -torch.log(p).mean()  # LINE compiled

    def whole_step(x, wrong):
        optimizer.zero_grad()
        loss = loss_of(x, wrong)
        loss.backward()
        optimizer.step()
        return loss

    if "whole" in sys.argv:
        train = torch.compile(whole_step, backend="eager")
        for step in range(6):
            losses.append(train(torch.randn(8, 6), broken and step == 3).item())
        return net
    update = optimizer.step
    if "inplace" in sys.argv:
        net.compile(backend="eager")
    else:
        loss_of = torch.compile(backend="eager")(loss_of)
        update = torch.compile(lambda: optimizer.step(), backend="eager")
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(torch.randn(8, 6), broken and step == 3)
        losses.append(loss.item())
        loss.backward()
        update()
    return net


def threads():
    """Two threads that train at once, and then the main thread."""
    start = threading.Barrier(2)
    nets = [nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)) for _ in range(3)]

    def train(net, steps):
        numbers = torch.Generator().manual_seed(7)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        if net is not nets[2]:
            start.wait()
        for _ in range(steps):
            loss = net(torch.randn(8, 6, generator=numbers)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    both = [threading.Thread(target=train, args=(net, 8)) for net in nets[:2]]
    for each in both:
        each.start()
    for each in both:
        each.join()
    train(nets[2], 6)
    return nn.ModuleList(nets)


def squares(net):
    """Five steps towards an output of zero; comes back after each."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(5):
        loss = net(torch.randn(4, 1024)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        yield


class Moved(nn.Module):
    """Gives a weight other memory in each forward pass, enough that the old goes back to the
    system."""

    def __init__(self):
        super().__init__()
        self.wide, self.last = nn.Linear(1024, 1024), nn.Linear(1024, 3)

    def forward(self, x):
        self.wide.weight.data = self.wide.weight.data / self.wide.weight.data.norm() * 20
        return self.last(F.relu(self.wide(x)))


def moved():
    """A weight is somewhere else when the step ends."""
    net = Moved()
    for _ in squares(net):
        print("magnitude", "%.5g" % net.wide.weight.abs().mean().item(), flush=True)
    return net


class Lent(torch.autograd.Function):
    """A product with a weight whose memory is there only while it is used."""

    @staticmethod
    def forward(ctx, x, shard, lent):
        lent.untyped_storage().resize_(shard.numel() * shard.element_size())
        lent.copy_(shard)
        out = x @ lent.view(1024, 1024)
        lent.untyped_storage().resize_(0)
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx, gradient):
        return None, (ctx.saved_tensors[0].t() @ gradient).flatten(), None


class Lending(nn.Module):
    def __init__(self):
        super().__init__()
        self.shard = nn.Parameter(torch.randn(1024 * 1024) / 32)
        self.register_buffer("lent", torch.zeros(1024 * 1024), persistent=False)
        self.lent.untyped_storage().resize_(0)

    def forward(self, x):
        return Lent.apply(x, self.shard, self.lent)


def lent():
    """Values whose memory is given back within the step, as FSDP does."""
    net = Lending()
    for _ in squares(net):
        pass
    return net


def stops():
    """A training that ends itself when its loss is not finite: "raise" or "exit", in a step whose
    operators are known, or ("new") the first with others."""
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        x = torch.randn(8, 6)
        out = net(x)
        if step == 3:
            for _ in range(2 if "new" in sys.argv else 0):
                out = out.sinh()
            out = out / (out - out)  # LINE stops
        loss = F.cross_entropy(out, torch.randint(0, 3, (8,)))
        losses.append(loss.item())
        if not torch.isfinite(loss):
            if "raise" in sys.argv:
                raise ValueError("the loss is %s" % loss.item())
            sys.exit(1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def masked():
    """A loss over the elements that a mask chooses, which are none in the broken step."""
    net = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        x = torch.randn(8, 6)
        chosen = x > (100 if broken and step == 3 else 0)
        loss = (net(x) - x)[chosen].square().mean()  # LINE masked
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def indexed():
    """A look-up and a loss by class; in the broken step one "word" or one "label" does not exist. That
    step may come "late"."""
    broken = 100 if "late" in sys.argv else 2
    net = nn.Sequential(nn.Embedding(10, 8), nn.Flatten(), nn.Linear(24, 5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(broken + 2):
        words, labels = torch.randint(0, 10, (4, 3)), torch.randint(0, 5, (4,))
        if step == broken and "word" in sys.argv:
            words[1, 1] = 12
        if step == broken and "label" in sys.argv:
            labels[3] = 9
        if step == broken and "ignored" in sys.argv:
            labels[3] = 255
        loss = F.cross_entropy(net(words), labels, ignore_index=255)  # LINE indexed
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def main():
    kinds = (eval_mode, by_hand, own_backward, folds, gan, broken_critic, moved, lent, stops)
    kinds += (translated, compiled, threads, masked, indexed)
    net = next(each for each in kinds if each.__name__ == case)()
    results.tell(losses, net)


if __name__ == "__main__":
    main()
