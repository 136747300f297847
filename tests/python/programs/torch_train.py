"""Unmodified PyTorch trainings for the end-to-end tests: torch_train.py CASE [STEPS]. Prints the
losses and a digest. DEVICE is where they run, by default the processor."""

import contextlib
import os
import sys

import results
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

case = sys.argv[1]
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 6
torch.manual_seed(7)
torch.set_num_threads(1)
device = os.environ.get("DEVICE", "cpu")
if device != "cpu":
    torch.use_deterministic_algorithms(True, warn_only=True)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(256, 120)
        self.fc2 = nn.Linear(120, 10)
        self.drop = nn.Dropout(0.1)
        self.sharpness = 1.0

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.fc2(self.drop(F.relu(self.fc1(x.flatten(1)))))
        if case.startswith("log0"):
            p = torch.softmax(x * self.sharpness, 1)
            return torch.log(p)  # LINE log0
        return x


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.scale = 1.0
        self.masks_all = False

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.ln1(x)).chunk(3, -1)
        )
        scores = (q @ k.transpose(-1, -2)) * self.scale / (c // self.heads) ** 0.5  # LINE overflow
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        if self.masks_all:
            mask[3] = False
        scores = scores.masked_fill(~mask, float("-inf"))
        shares = scores.softmax(-1)  # LINE masked
        x = x + self.out((shares @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, layers=2, width=32, heads=4, words=65):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.places = nn.Embedding(64, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, words):
        x = self.tokens(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if case == "checkpoint" else block(x)
        return self.head(self.norm(x))


class Attention(nn.Module):
    """With a padding mask, positions by the logarithm of a distance that is zero, and biases that
    begin as zeros; that of the keys never gets a gradient."""

    def __init__(self, width=32, words=65):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.near = nn.Embedding(8, 1)
        self.head = nn.Linear(width, words)
        for layer in (self.query, self.key, self.value, self.head):
            nn.init.zeros_(layer.bias)

    def forward(self, words, present):
        x = self.tokens(words)
        places = torch.arange(words.shape[1], device=words.device)
        distance = (places[None] - places[:, None]).abs()
        bucket = torch.where(distance < 4, distance, (torch.log(distance.float()) + 4).long())
        bias = self.near(bucket.clamp(max=7)).squeeze(-1)
        allowed = torch.where(present[:, None, :], 0.0, float("-inf")) + bias
        y = F.scaled_dot_product_attention(
            self.query(x)[:, None], self.key(x)[:, None], self.value(x)[:, None], allowed[:, None]
        )
        return self.head(y[:, 0] + x)


losses = []


def lenet():
    net = LeNet().to(device)
    if case == "channels_last":
        net = net.to(memory_format=torch.channels_last)
    if case == "frozen":
        for parameter in net.fc1.parameters():
            parameter.requires_grad_(False)
    rate = 1e3 if case == "explode" else 1e-3
    if case == "sgd" or case == "explode":
        optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(
            net.parameters(), lr=rate, fused=True if case == "fused" else None
        )
    criterion = nn.NLLLoss() if case.startswith("log0") else nn.CrossEntropyLoss()
    model = net
    if case == "compile":
        model = torch.compile(net, backend="aot_eager")
    elif case == "log0_inductor":
        model = torch.compile(net)
    for step in range(steps):
        x, y = torch.randn(8, 1, 28, 28), torch.randint(0, 10, (8,))
        if case.startswith("log0") and step == (0 if case == "log0_first" else 3):
            net.sharpness = 1e4
        if case == "nan" and step == 3:
            x[2, 0, 3, 3] = float("nan")
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        parts = 2 if case == "accumulate" else 1
        for some_x, some_y in zip(x.chunk(parts), y.chunk(parts)):
            loss = criterion(model(some_x), some_y) / parts
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if case == "evaluate":
            net.eval()
            with torch.no_grad():
                losses.append(criterion(net(x), y).item())
            net.train()
    return net


def gpt():
    net = GPT().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scaler = (
        torch.amp.GradScaler(device, init_scale=2.0**10) if case in ("scaler", "overflow") else None
    )
    dtype = {"bfloat16": torch.bfloat16, "scaler": torch.float16, "overflow": torch.float16}.get(
        case
    )
    for step in range(steps):
        words = torch.randint(0, 65, (4, 17)).to(device)
        if case == "overflow" and step == 3:
            net.blocks[1].scale = 1e6
        net.blocks[1].masks_all = case == "masked" and step == 3
        with torch.autocast(device, dtype=dtype) if dtype else contextlib.nullcontext():
            out = net(words[:, :-1])
            loss = F.cross_entropy(out.flatten(0, 1).float(), words[:, 1:].flatten())
        optimizer.zero_grad()
        if scaler:
            scaler.scale(loss).backward()
            if case == "scaler" and step == 2:
                net.head.weight.grad[0, 0] = float("inf")
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        losses.append(loss.item())
    return net


def attention():
    net = Attention().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    present = (torch.arange(12)[None] < torch.tensor([12, 8, 5, 10])[:, None]).to(device)
    for _ in range(steps):
        words = torch.randint(0, 65, (4, 12)).to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            out = net(words, present)
        loss = F.cross_entropy(out.flatten(0, 1).float(), words.roll(-1, 1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


def lbfgs():
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
    x = torch.randn(32, 8).to(device)
    y = x.sum(1, keepdim=True).sin()

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    for _ in range(steps):
        losses.append(float(optimizer.step(closure)))
    return net


def gan():
    maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8)).to(device)
    judge = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 1)).to(device)
    for_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)
    for_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
    for _ in range(steps):
        real = torch.randn(16, 8).to(device)
        fake = maker(torch.randn(16, 4).to(device))
        loss = F.softplus(-judge(real)).mean() + F.softplus(judge(fake.detach())).mean()
        for_judge.zero_grad()
        loss.backward()
        for_judge.step()
        other = F.softplus(-judge(fake)).mean()
        for_maker.zero_grad()
        other.backward()
        for_maker.step()
        losses.extend((loss.item(), other.item()))
    return nn.ModuleList((maker, judge))


def loader():
    net = nn.Linear(8, 1).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(4 * steps, 8), torch.randn(4 * steps, 1))
    how = "spawn" if case == "spawn" else "fork"
    for x, y in DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=how):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net


def no_modules():
    weight = torch.randn(8, 1).to(device).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.01)
    for _ in range(steps):
        x = torch.randn(16, 8).to(device)
        loss = ((x @ weight - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return nn.ParameterList([weight])


def main():
    kinds = {
        "gpt": gpt,
        "bfloat16": gpt,
        "scaler": gpt,
        "overflow": gpt,
        "masked": gpt,
        "checkpoint": gpt,
        "attention": attention,
        "lbfgs": lbfgs,
        "gan": gan,
        "fork": loader,
        "spawn": loader,
        "functional": no_modules,
    }
    net = kinds.get(case, lenet)()
    results.tell(losses, net)


if __name__ == "__main__":
    main()
