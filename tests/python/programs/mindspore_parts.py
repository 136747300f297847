"""A MindSpore training in PyNative mode whose operators the dispatch mode shows only in part:
mindspore_parts.py plain|data|weight|twins|gradient|log0|summed_log0. Prints losses and a digest."""

import os
import sys

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
import results  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

case = sys.argv[1]
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(5)
np.random.seed(5)


class Net(nn.Cell):
    """Lists of tensors, parts of them, and a weight that is read through a view."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Dense(12, 8), nn.LayerNorm((8,))
        self.second = ms.Parameter(Tensor(np.random.rand(8, 6).astype(np.float32)), name="second")
        self.out = nn.Dense(6, 3)
        self.wrong = case == "log0"

    def construct(self, x):
        x = ops.cat([x[:, :4], ops.exp(x[:, 4:]), ops.softmax(x[:, :4])], 1)
        x = self.norm(self.first(x))
        halves = ops.split(x, 4, 1)
        x = ops.cat([halves[1], halves[0]], 1)
        if self.wrong:
            x = ops.log(ops.relu(x))  # LINE parts_log0
        return self.out(ops.matmul(x, self.second.T.swapaxes(0, 1)))


net, loss_fn, losses = Net(), nn.CrossEntropyLoss(), []
twin = Net()  # its weights have the same names


def forward(x, y):
    loss = loss_fn(net(x), y)
    if case != "twins":
        return loss
    same = ((net(x) - ops.stop_gradient(twin(x))) ** 2).mean()
    return loss + 0.1 * same + 1e-4 * sum((each**2).sum() for each in net.trainable_params())


class Slow(nn.Optimizer):
    """Python runs its update."""

    def construct(self, gradients):
        for weight, gradient in zip(self.parameters, gradients):
            ops.assign(weight, weight - gradient * 0.05)
        return True


if case == "summed_log0":
    optimizer = Slow(0.05, net.trainable_params())
else:
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
step = ms.value_and_grad(forward, None, optimizer.parameters)
net.set_train()
for number in range(5):
    values = np.random.rand(16, 8).astype(np.float32)
    labels = Tensor(np.random.randint(0, 3, (16,)).astype(np.int32))
    if case == "data" and number == 3:
        values[2, 5] = np.nan
    if case in ("weight", "twins") and number == 3:
        broken = net.norm.gamma.asnumpy().copy()
        broken[1] = np.inf
        net.norm.gamma.set_data(Tensor(broken))
    summed = None
    for part in range(2 if case == "summed_log0" else 0):
        net.wrong = number == 2 and part == 1
        _, gradients = step(Tensor(values + part), labels)
        summed = [a + b for a, b in zip(summed, gradients)] if summed else gradients
        net.wrong = False
    loss, gradients = step(Tensor(values) * 2, labels)  # what an operator has made before the step
    if case == "gradient" and number == 3:
        gradients = (gradients[0] * float("nan"), *gradients[1:])  # LINE parts_gradient
    if summed:
        gradients = tuple(a + b / 3 for a, b in zip(summed, gradients))
    optimizer(gradients)
    losses.append(float(loss.asnumpy()))
results.tell_bytes(losses, [each.asnumpy().tobytes() for each in net.get_parameters()])
