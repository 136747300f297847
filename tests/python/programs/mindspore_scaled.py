"""A MindSpore training in half precision with a loss scaler: mindspore_scaled.py sound|broken
jit|pynative. The first scales are too large, so that the scaler skips their steps; of `broken`,
every gradient is infinite. Prints losses and a digest."""

import os
import sys

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from results import tell_bytes  # noqa: E402

broken, compiled = sys.argv[1] == "broken", sys.argv[2] == "jit"
ms.set_context(mode=ms.PYNATIVE_MODE if not compiled else ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(1)
np.random.seed(0)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(16, 32).to_float(ms.float16)
        self.second = nn.Dense(32, 4).to_float(ms.float16)

    def construct(self, x):
        x = ops.relu(self.first(x))
        if broken:
            x = x + ops.sqrt(x * 0)  # LINE sqrt
        return ops.cast(self.second(x), ms.float32)


net, loss_fn = Net(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
scaler = ms.amp.DynamicLossScaler(2.0**4 if broken else 2.0**22, 2, 5)


def forward(x, y):
    return scaler.scale(loss_fn(net(x), y))


gradient = ms.value_and_grad(forward, None, optimizer.parameters)


def step(x, y):
    loss, gradients = gradient(x, y)
    loss, gradients = scaler.unscale(loss), scaler.unscale(gradients)
    sound = ms.amp.all_finite(gradients)
    scaler.adjust(sound)
    if sound:
        loss = ops.depend(loss, optimizer(gradients))
    return loss


if compiled:
    step = ms.jit(step)
losses = []
for _ in range(8):
    x = Tensor(np.random.randn(32, 16).astype(np.float32))
    y = Tensor(np.random.randint(0, 4, 32).astype(np.int32))
    losses.append(float(step(x, y).asnumpy()))
tell_bytes(losses, [each.asnumpy().tobytes() for each in net.get_parameters()])
