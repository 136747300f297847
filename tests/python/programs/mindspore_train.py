"""Unmodified MindSpore trainings for the end-to-end tests: mindspore_train.py CASE [STEPS]. Prints
losses and a digest."""

import hashlib
import os
import sys

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

case = sys.argv[1]
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 5
ms.set_context(
    mode=ms.PYNATIVE_MODE if case.startswith("pynative") else ms.GRAPH_MODE, device_target="CPU"
)
ms.set_seed(3)
np.random.seed(3)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.pool = nn.MaxPool2d(2, 2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(6 * 12 * 12, 32)
        self.fc2 = nn.Dense(32, 10)
        self.log = ops.Log()
        self.softmax = nn.Softmax()
        self.sharpness = ms.Parameter(
            Tensor(1.0, ms.float32), name="sharpness", requires_grad=False
        )

    def construct(self, x):
        x = self.flatten(self.pool(self.relu(self.conv1(x))))
        x = self.fc2(self.relu(self.fc1(x)))
        if case.endswith("log0"):
            p = self.softmax(x * self.sharpness)
            x = self.log(p)  # LINE log0
        return x


def batches(count):
    for step in range(count):
        x = np.random.randn(8, 1, 28, 28).astype(np.float32)
        y = np.random.randint(0, 10, (8,)).astype(np.int32)
        if case.endswith("nan") and step == 3:
            x[2, 0, 3, 3] = np.nan
        yield x, y


losses = []
net = Net()
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
if case == "model":
    data = ms.dataset.GeneratorDataset(list(batches(steps)), ["data", "label"], shuffle=False)

    class Keep(ms.train.Callback):
        def on_train_step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs.asnumpy()))

    ms.train.Model(net, loss_fn, optimizer).train(
        1, data, callbacks=[Keep()], dataset_sink_mode=False
    )
elif case in ("pynative", "pynative_log0", "pynative_nan"):

    def forward(x, y):
        return loss_fn(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)
    for step, (x, y) in enumerate(batches(steps)):
        if case.endswith("log0") and step == 3:
            net.sharpness.set_data(Tensor(1e4, ms.float32))
        loss, gradients = gradient(Tensor(x), Tensor(y))
        optimizer(gradients)
        losses.append(float(loss.asnumpy()))
else:
    train = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
    train.set_train()
    check = nn.WithEvalCell(net, loss_fn)
    for step, (x, y) in enumerate(batches(steps)):
        if case.endswith("log0") and step == 3:
            net.sharpness.set_data(Tensor(1e4, ms.float32))
        if case == "shapes" and step % 2:
            x, y = x[:4], y[:4]
        losses.append(float(train(Tensor(x), Tensor(y)).asnumpy()))
        if case == "evaluate":
            check.set_train(False)
            losses.append(float(check(Tensor(x), Tensor(y))[0].asnumpy()))
digest = hashlib.sha256()
for parameter in net.get_parameters():
    digest.update(parameter.asnumpy().tobytes())
print("losses", " ".join(float(loss).hex() for loss in losses))
print("digest", digest.hexdigest())
