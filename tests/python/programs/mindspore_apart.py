"""MindSpore trainings of PyNative mode whose gradients are compiled by @jit and whose update is not
part of that, or which update without an optimizer, for the end-to-end tests: mindspore_apart.py CASE
[momentum|adam|rprop]. A CASE that begins with graph_ runs in graph mode. Prints losses and a digest."""

import hashlib
import os
import sys

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

case = sys.argv[1]
graph = case.startswith("graph_")
ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(7)
np.random.seed(7)
steps = 6
mode = case.partition("_")[0] if case.startswith(("trace", "bytecode")) else "ast"


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
        if "log0" in case:
            p = ops.softmax(x * self.sharpness, -1)
            x = ops.log(p)  # LINE log0
        return x


class Slow(nn.Optimizer):
    """Python runs its update."""

    def __init__(self, weights, rate):
        super().__init__(rate, weights)
        self.means = self.parameters.clone(prefix="means", init="zeros")

    def construct(self, gradients):
        for weight, mean, gradient in zip(self.parameters, self.means, gradients):
            ops.assign(mean, mean * 0.5 + gradient)
            ops.assign_sub(weight, mean * 0.05)
        return True


net = Net()
net.set_train()
if case == "half":
    net.to_float(ms.float16)
loss_fn = nn.CrossEntropyLoss()
weights = net.trainable_params()
if case.startswith("python"):
    optimizer = Slow(weights, 0.05)
elif case == "groups":
    optimizer = ms.experimental.optim.Adam(
        [{"params": weights[:2], "lr": 0.02}, {"params": weights[2:]}], lr=0.05
    )
elif sys.argv[2:3] == ["adam"]:
    optimizer = nn.Adam(weights, 0.05)
elif sys.argv[2:3] == ["rprop"]:
    optimizer = nn.Rprop(weights, 0.05)
else:
    optimizer = nn.Momentum(weights, 0.05, 0.9)
if case.startswith("renamed"):
    optimizer.update_parameters_name("of_net.")
captured = Tensor(np.random.randn(6, 3).astype(np.float32))


def batch():
    x = np.random.randn(6, 8).astype(np.float32)
    return Tensor(x), Tensor(np.random.randint(0, 3, (6,)).astype(np.int32))


@(ms.jit(capture_mode=mode) if case.endswith("part") else lambda function: function)
def spread_of(x):
    return ops.sqrt(ops.square(x).mean() + 1.0)


def forward(x, y):
    if case.endswith("part"):
        return loss_fn(net(x), y) + spread_of(x)
    if case == "captured":
        return loss_fn(net(x) * captured, y)
    if case == "half":
        return loss_fn(net(x).astype(ms.float32), y)
    return loss_fn(net(x), y)


def spread(x):
    return ops.sqrt(ops.square(net(x)).mean() + 1.0)


gradient = ms.value_and_grad(forward, None, weights)
gradient_of_spread = ms.value_and_grad(spread, None, weights)


@ms.jit(capture_mode=mode)
def differentiate(x, y):
    return gradient(x, y)


@ms.jit
def differentiate_spread(x):
    return gradient_of_spread(x)


@ms.jit
def update(gradients):
    optimizer(gradients)
    return gradients[0]


@ms.jit
def own_update(gradients):
    for weight, change in zip(weights, gradients):
        ops.assign_sub(weight, change * 0.05)
    return gradients[0]


@ms.jit
def whole(x, y):
    loss, gradients = gradient(x, y)
    return ops.depend(loss, optimizer(gradients))


class Trainer:
    """No cell."""

    def __init__(self):
        self.gradient = gradient

    @ms.jit
    def differentiate(self, x, y):
        return self.gradient(x, y)


wrapped, trainer = ms.jit(gradient), Trainer()


def apart(x, y, how=differentiate, then=optimizer):
    loss, gradients = how(x, y)
    then(gradients)
    return loss


def two(x, y):
    loss, gradients = differentiate(x, y)
    more, others = differentiate_spread(x)
    optimizer(tuple(ops.clamp(a + 0.1 * b, -1.0, 1.0) for a, b in zip(gradients, others)))
    return loss + more


def twice(x, y):
    """The same function, as when gradients are gathered."""
    loss, gradients = differentiate(x, y)
    more, others = differentiate(x * 0.5, y)
    optimizer(tuple(a + b for a, b in zip(gradients, others)))
    return loss + more


def broken(x, y):
    try:
        differentiate(x[:, :5], y)
    except Exception as fault:
        print("caught", type(fault).__name__)
    return apart(x, y)


def fails(x, y, how=apart):
    """A label that there is not: MindSpore raises in the compiled function, and can run it no more."""
    if step < 3:
        return how(x, y + 99 if step == 2 else y)
    return plain(x, y)


def mixed(*order):
    count = iter(range(steps))
    return lambda x, y: order[next(count) * len(order) // steps](x, y)


def plain(x, y):
    return apart(x, y, gradient)


def by_hand(x, y):
    loss, gradients = gradient(x, y)
    for weight, change in zip(weights, gradients):
        ops.assign(weight, weight - 0.05 * change)
    return loss


held = []


def loose(x, y):
    """Weights that no cell holds, and others of the same names from step 3 on."""
    if step % 3 == 0:
        made = np.random.randn(8, 3).astype(np.float32), np.zeros(3, np.float32)
        held[:] = [ms.Parameter(Tensor(each), name=n) for each, n in zip(made, ("W_x", "b_x"))]
    loss_of = lambda: loss_fn(ops.matmul(x, held[0]) + held[1], y)  # noqa: E731
    loss, gradients = ms.value_and_grad(loss_of, None, weights=held)()
    for weight, change in zip(held, gradients):
        ops.assign(weight, weight - 0.05 * change)
    return loss


def skipped(x, y):
    """The gradients of step 2 are not finite."""
    loss, gradients = gradient(x * 1e38 * 1e3 if step == 2 else x, y)
    if ms.amp.all_finite(gradients):
        optimizer(gradients)
    return ops.zeros_like(loss) if step == 2 else loss


def caught(x, y):
    try:
        return plain(x[:, :5] if step == 2 else x, y)
    except Exception as fault:
        print("caught", type(fault).__name__)
    return plain(x, y)


def stops(x, y):
    """The training ends itself in the midst of a step."""
    loss, gradients = gradient(x * 1e38 * 1e3 if step == 2 else x, y)
    if step == 2:
        raise ArithmeticError("the loss is %s" % loss)
    optimizer(gradients)
    return loss


def evaluated(x, y):
    """An evaluation between the gradients and the update."""
    loss, gradients = gradient(x, y)
    net.set_train(False)
    more = loss_fn(net(x), y)
    net.set_train()
    optimizer(gradients)
    return loss + more


class WithLoss(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self._backbone, self._loss_fn = net, loss_fn

    def construct(self, x, y, unused):
        return self._loss_fn(self._backbone(x), y)


def in_graph_mode(x, y):
    ms.set_context(mode=ms.GRAPH_MODE)
    if not cells:
        cells.append(nn.TrainOneStepCell(WithLoss(), optimizer))
        try:
            cells[0](x, y[:2], x)
        except Exception as fault:
            print("caught", type(fault).__name__)
    loss = cells[0](x, y, x)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    return loss


cells = []
train = {
    "plain": plain,
    "renamed": plain,
    "groups": plain,
    "graph_plain": plain,
    "graph_by_hand": by_hand,
    "by_hand": by_hand,
    "loose": loose,
    "skipped": skipped,
    "caught": caught,
    "stops": stops,
    "evaluated": evaluated,
    "python_plain": plain,
    "apart_cell": mixed(apart, in_graph_mode),
    "cell_plain": mixed(in_graph_mode, plain),
    "wrapped": lambda x, y: apart(x, y, wrapped),
    "method": lambda x, y: apart(x, y, trainer.differentiate),
    "update": lambda x, y: apart(x, y, then=update),
    "mutable": lambda x, y: apart(x, y, then=lambda each: update(ms.mutable(each))),
    "own_update": lambda x, y: apart(x, y, then=own_update),
    "two": two,
    "twice": twice,
    "broken": broken,
    "fails": fails,
    "whole_fails": lambda x, y: fails(x, y, whole),
    "plain_whole": mixed(plain, whole),
    "whole_plain": mixed(whole, plain),
    "apart_whole_plain": mixed(apart, whole, plain),
    "trace_part": plain,
    "bytecode_part": plain,
    "plain_apart": mixed(plain, apart),
}.get(case.partition("_log0")[0], apart)
losses = []
for step in range(steps):
    if case.endswith("log0") and step == 3 or case.endswith("log0_first") and step == 0:
        # A compiled function does not see what set_data() does.
        ops.assign(net.sharpness, Tensor(1e4, ms.float32))
    try:
        losses.append(float(train(*batch())))
    except RuntimeError as fault:
        print("losses caught", str(fault).partition("\n")[0])
digest = hashlib.sha256()
for parameter in list(net.get_parameters()) + list(optimizer.get_parameters()):
    digest.update(parameter.asnumpy().tobytes())
print("losses", " ".join(loss.hex() for loss in losses))
print("digest", digest.hexdigest())
