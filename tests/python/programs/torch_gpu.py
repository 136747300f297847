"""Unmodified PyTorch trainings that need a GPU: torch_gpu.py CASE [broken]. Prints the losses and a
digest."""

import sys

import results
import torch
import torch.nn as nn
import torch.nn.functional as F

case, broken = sys.argv[1], "broken" in sys.argv
torch.manual_seed(11)
torch.use_deterministic_algorithms(True, warn_only=True)
losses = []
STEPS = 8


def layers():
    return nn.Sequential(
        nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
    ).cuda()


def batches():
    numbers = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        yield torch.randn(16, 32, generator=numbers).cuda(), torch.randint(
            0, 4, (16,), generator=numbers
        ).cuda()


def graph():
    """The whole step is a CUDA graph, behind three steps on a stream of their own."""
    net = layers()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, capturable=True)
    x, y = torch.zeros(16, 32).cuda(), torch.zeros(16, dtype=torch.long).cuda()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = step()
    for number, (some_x, some_y) in enumerate(batches()):
        x.copy_(some_x)
        y.copy_(some_y)
        if broken and number == 3:
            x[2, 7] = float("inf")
        captured.replay()
        losses.append(loss.item())
    return net


def callables():
    """Forward and backward passes are CUDA graphs, the optimizer is not."""
    net = layers()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    model = torch.cuda.make_graphed_callables(net, (torch.randn(16, 32).cuda(),))
    for x, y in batches():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


def streams():
    """Two halves of the network on two streams."""
    one, two, last = layers(), layers(), nn.Linear(8, 4).cuda()
    net = nn.ModuleList((one, two, last))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    side = torch.cuda.Stream()
    for number, (x, y) in enumerate(batches()):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)  # so that a reader who does not wait reads too early
            half = two(x)
            if broken and number == 3:
                half = torch.log(half - half)  # LINE streams
        first = one(x)
        torch.cuda.current_stream().wait_stream(side)
        half.record_stream(torch.cuda.current_stream())
        loss = F.cross_entropy(last(torch.cat((first, half), 1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32)
        self.head = nn.Linear(32, 4)
        self.factor = 1.0

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)), inplace=True)
        x = self.norm2(self.conv2(x) * self.factor)  # LINE images
        return self.head(F.relu(x).mean((2, 3)))


def images():
    """Mixed precision in float16, with a scaler, weights in another order, and statistics of
    batches."""
    net = Images().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**12)
    for number in range(STEPS):
        x = (
            torch.randn(8, 3, 32, 32)
            .pin_memory()
            .cuda(non_blocking=True)
            .to(memory_format=torch.channels_last)
        )
        y = torch.randint(0, 4, (8,)).cuda()
        net.factor = 1e6 if broken and number == 3 else 1.0
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return net


def teacher():
    """A long calculation whose values are let go of at once, in little memory: 64 MiB each."""
    total = torch.cuda.get_device_properties(0).total_memory
    if "tight" in sys.argv:
        torch.cuda.set_per_process_memory_fraction(2 * 2**30 / total)
    net = layers()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    most = 0
    for x, y in batches():
        with torch.no_grad():
            wide = torch.zeros(2**24).cuda()
            for _ in range(100 if "tight" in sys.argv else total // 2**26):
                wide = torch.tanh(wide + 1e-3)
        loss = F.cross_entropy(net(x + wide[:32]), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        most = max(most, torch.cuda.max_memory_allocated())
    print("peak %.1f GiB of %.1f" % (most / 2**30, total / 2**30))
    return net


def main():
    kinds = (graph, callables, streams, images, teacher)
    net = next(each for each in kinds if each.__name__ == case)()
    results.tell(losses, net)


if __name__ == "__main__":
    main()
