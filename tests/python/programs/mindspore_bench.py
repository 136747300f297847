"""Times of steps with the agent and without, in turn: mindspore_bench.py LABEL graph|pynative. Started
by bench.py."""

import statistics
import sys
import time

label, mode = sys.argv[1:3]
sys.argv = ["mindspore_more.py", "bench", mode]

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402

import mindspore_more  # noqa: E402
import msdbg_agent  # noqa: E402

agent = msdbg_agent._agents["mindspore"]
parts = (agent.graph_mode, agent.pynative.recorder)
rounds = 10


def steps():
    net = mindspore_more.Transformer(4, 128, 4)
    net.set_train()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Momentum(net.trainable_params(), 1e-3, 0.9)
    words = np.random.randint(0, 11, (8, 65)).astype(np.int32)
    x, y = Tensor(words[:, :-1]), Tensor(words[:, 1:].reshape(-1))
    if mode == "graph":
        train = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
        train.set_train()
        return lambda: train(x, y)

    def forward(x, y):
        return loss_fn(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def step():
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    return step


step = steps()
times = {True: [], False: []}
for turn in range(2 * rounds):
    # Switched off, the wrappers return at once.
    off = turn % 2 == 1
    for part in parts:
        part.off = off
    for each in range(4):
        begin = time.perf_counter()
        step().asnumpy()
        if turn > 1 and each > 0:
            times[off].append(time.perf_counter() - begin)
for part in parts:
    part.off = False
print(
    "RATIO %s, %s: %.2f (without: %.1f ms)"
    % (
        "MindSpore, transformer of 4 layers, %s mode" % mode,
        label,
        statistics.median(times[False]) / statistics.median(times[True]),
        statistics.median(times[True]) * 1e3,
    )
)
