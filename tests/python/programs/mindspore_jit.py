"""MindSpore trainings whose whole step is compiled by @jit, for the end-to-end tests:
mindspore_jit.py CASE [graph]. Prints losses and a digest."""

import hashlib
import os
import sys

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

case = sys.argv[1]
graph = sys.argv[2:3] == ["graph"]
ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(7)
np.random.seed(7)
steps = 6


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.relu = nn.Dense(8, 8), nn.BatchNorm1d(8), nn.ReLU()

    def construct(self, x):
        return self.relu(self.norm(self.fc(x)))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = Block(), Block(), nn.Dense(8, 3)
        self.sharpness = ms.Parameter(Tensor(1.0, ms.float32), requires_grad=False)

    def construct(self, x):
        x = self.out(self.b(self.a(x)))
        if case.endswith("log0"):
            p = ops.softmax(x * self.sharpness, -1)
            x = ops.log(p)  # LINE log0
        return x


net = Net()
net.set_train()
loss_fn = nn.CrossEntropyLoss()
make = nn.Adam if case == "adam" else lambda weights, rate: nn.Momentum(weights, rate, 0.9)
optimizer = make(net.trainable_params(), 0.05)


def batch(step):
    size = 4 if case == "shapes" and step % 2 else 6
    x = np.random.randn(size, 8).astype(np.float32)
    return Tensor(x), Tensor(np.random.randint(0, 3, (size,)).astype(np.int32))


def forward(x, y):
    return loss_fn(net(x), y)


gradient = ms.value_and_grad(forward, None, optimizer.parameters)


def plain_step(x, y):
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    return loss


@ms.jit
def compiled_step(x, y):
    loss, gradients = gradient(x, y)
    loss = ops.depend(loss, optimizer(gradients))
    return loss


@ms.jit
def evaluate(x, y):
    return loss_fn(net(x), y)


class Trainer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.network, self.optimizer, self._loss_fn = net, optimizer, loss_fn
        self.gradient = ms.value_and_grad(self.forward, None, optimizer.parameters)

    def forward(self, x, y):
        return self._loss_fn(self.network(x), y)

    @ms.jit
    def train_step(self, x, y):
        loss, gradients = self.gradient(x, y)
        self.optimizer(gradients)
        return loss


class PlainTrainer:
    """No cell."""

    def __init__(self):
        self.net, self.optimizer, self.gradient = net, optimizer, gradient

    @ms.jit
    def train_step(self, x, y):
        loss, gradients = self.gradient(x, y)
        self.optimizer(gradients)
        return loss


@ms.jit
def own_update(x, y):
    loss, gradients = gradient(x, y)
    for weight, change in zip(optimizer.parameters, gradients):
        ops.assign_sub(weight, change * 0.05)
    return loss


def epoch(count, losses):
    """Compiled again each time, as in a loop over epochs."""

    @ms.jit
    def train_step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    for step in range(count):
        losses.append(train_step(*batch(step)))


train = {
    "wrapped": lambda: ms.jit(plain_step),
    "method": lambda: Trainer().train_step,
    "method_log0": lambda: Trainer().train_step,
    "object": lambda: PlainTrainer().train_step,
    "own": lambda: own_update,
}.get(case, lambda: compiled_step)()
losses = []
if case == "epochs":
    for _ in range(3):
        epoch(2, losses)
else:
    for step in range(steps):
        if case.endswith("log0") and step == 3:
            # A compiled function does not see what set_data() does.
            ops.assign(net.sharpness, Tensor(1e4, ms.float32))
        x, y = batch(step)
        if case == "evaluate":
            losses.append(evaluate(x, y))
        losses.append(train(x, y))
digest = hashlib.sha256()
for parameter in list(net.get_parameters()) + list(optimizer.get_parameters()):
    digest.update(parameter.asnumpy().tobytes())
print("losses", " ".join(float(loss).hex() for loss in losses))
print("digest", digest.hexdigest())
