"""Times of steps with the agent and without, in turn: torch_bench.py LABEL. Started by bench.py."""

import statistics
import sys
import time

label = sys.argv[1]
sys.argv = ["torch_train.py", "gpt", "1"]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import msdbg_agent  # noqa: E402
import torch_train  # noqa: E402

torch.set_num_threads(1)
recorder = msdbg_agent._agents["torch"].recorder


device = torch_train.device
torch.use_deterministic_algorithms(False)


def lenet():
    net, criterion = torch_train.LeNet().to(device), torch.nn.CrossEntropyLoss()
    x, y = torch.randn(64, 1, 28, 28).to(device), torch.randint(0, 10, (64,)).to(device)
    return net, lambda: criterion(net(x), y)


def gpt(layers, width, heads, batch, long):
    net = torch_train.GPT(layers, width, heads).to(device)
    words = torch.randint(0, 65, (batch, long)).to(device)
    return net, lambda: F.cross_entropy(net(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())


CASES = [
    ("LeNet, 64 images", lenet, 12),
    ("GPT of 6 layers", lambda: gpt(6, 256, 8, 8, 65), 6),
]
if device != "cpu":
    CASES.append(("GPT of 12 layers, 1024 wide", lambda: gpt(12, 1024, 16, 128, 65), 6))

for name, make, rounds in CASES:
    net, forward = make()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    times = {True: [], False: []}
    for turn in range(2 * rounds):
        # Switched off, the hooks return at once.
        recorder.off = turn % 2 == 1
        for step in range(4):
            begin = time.perf_counter()
            optimizer.zero_grad()
            forward().backward()
            optimizer.step()
            if device != "cpu":
                torch.cuda.synchronize()
            if turn > 1 and step > 0:
                times[recorder.off].append(time.perf_counter() - begin)
    recorder.off = False
    print(
        "RATIO %s, %s: %.2f (without: %.1f ms)"
        % (
            name,
            label,
            statistics.median(times[False]) / statistics.median(times[True]),
            statistics.median(times[True]) * 1e3,
        )
    )
    # The next network begins with an empty step of its own.
