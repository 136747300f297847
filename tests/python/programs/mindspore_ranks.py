"""A rank of a data-parallel MindSpore training in graph mode, under msrun.

The losses and a digest of the parameters are printed; `flip` changes a bit of a weight of rank 1.
"""

import hashlib
import sys

import mindspore
import numpy
from mindspore import Tensor, nn
from mindspore.communication import get_group_size, get_rank, init

STEPS = 4


def made(random, *shape):
    return Tensor((0.2 * random.standard_normal(shape)).astype(numpy.float32))


class Net(nn.Cell):
    def __init__(self, random):
        super().__init__()
        self.up = nn.Dense(12, 16, made(random, 16, 12), made(random, 16))
        self.act = nn.ReLU()
        self.down = nn.Dense(16, 6, made(random, 6, 16), made(random, 6))

    def construct(self, x):
        return self.down(self.act(self.up(x)))


def flip(parameter):
    values = parameter.asnumpy().copy()
    values.reshape(-1).view(numpy.uint32)[5] ^= 1 << 20
    parameter.set_data(Tensor(values))


def main(kind):
    mindspore.set_context(mode=mindspore.GRAPH_MODE, device_target="CPU")
    init()
    mindspore.set_auto_parallel_context(
        parallel_mode=mindspore.ParallelMode.DATA_PARALLEL, gradients_mean=True, device_num=get_group_size()
    )
    net = Net(numpy.random.default_rng(3))
    data = numpy.random.default_rng(50 + get_rank())
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")),
        nn.Momentum(net.trainable_params(), 0.05, 0.9),
    )
    step.set_train()
    losses = []
    for number in range(STEPS):
        if kind == "flip" and get_rank() == 1 and number == 2:
            flip(net.up.weight)
        x = Tensor(data.standard_normal((8, 12)).astype(numpy.float32))
        y = Tensor(data.integers(0, 6, 8).astype(numpy.int32))
        losses.append(float(step(x, y).asnumpy()).hex())
    digest = hashlib.sha256()
    for parameter in net.get_parameters():
        digest.update(parameter.asnumpy().tobytes())
    # One line each: the ranks write into files of their own.
    print("rank %d losses %s digest %s" % (get_rank(), losses, digest.hexdigest()), flush=True)


main(*sys.argv[1:] or ["plain"])
