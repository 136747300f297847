"""A MindSpore training with a look-up and a loss by class: mindspore_indexed.py graph|jit
[word|label]. In step 2 that "word" or that "label" does not exist. Prints losses and a digest."""

import hashlib
import os
import sys

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402

way, what = sys.argv[1], sys.argv[2] if sys.argv[2:] else ""
ms.set_context(mode=ms.GRAPH_MODE if way == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(5)
np.random.seed(5)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed, self.fc, self.tanh = nn.Embedding(10, 8), nn.Dense(8, 5), nn.Tanh()

    def construct(self, x):
        return self.fc(self.tanh(self.embed(x).mean(axis=1)))


net = Net()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


def forward(x, y):
    return loss_fn(net(x), y)


gradient = ms.value_and_grad(forward, None, optimizer.parameters)


def whole(x, y):
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    return loss


if way == "graph":
    train = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer).set_train()
else:
    train = ms.jit(whole)
losses = []
for step in range(4):
    words, labels = np.random.randint(0, 10, (4, 3)), np.random.randint(0, 5, 4)
    if step == 2 and what == "word":
        words[1, 1] = 12
    if step == 2 and what == "label":
        labels[3] = 9
    losses.append(float(train(Tensor(words, ms.int32), Tensor(labels, ms.int32))))
digest = hashlib.sha256()
for parameter in net.get_parameters():
    digest.update(parameter.asnumpy().tobytes())
print("losses", " ".join("%.9g" % each for each in losses))
print("digest", digest.hexdigest())
