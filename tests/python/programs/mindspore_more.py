"""More MindSpore trainings for the end-to-end tests: mindspore_more.py CASE [graph|pynative]. Prints
losses and a digest."""

import hashlib
import os
import sys

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

case = sys.argv[1]
pynative = sys.argv[2:3] == ["pynative"]
ms.set_context(mode=ms.PYNATIVE_MODE if pynative else ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(5)
np.random.seed(5)
compiled = ms.jit if case.startswith("jit") else (lambda function: function)


class Block(nn.Cell):
    """Compiled inside a PyNative training."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(8, 8)
        self.relu = nn.ReLU()
        self.sharpness = ms.Parameter(Tensor(1.0, ms.float32), requires_grad=False)

    @compiled
    def construct(self, x):
        x = self.relu(self.fc(x))
        if case == "jit_log0":
            x = ops.log(ops.softmax(x * self.sharpness, -1))  # LINE jit_log0
        return x


class Halved(nn.Cell):
    def construct(self, x):
        return x / 2

    def bprop(self, x, out, gradient):
        return (gradient / (gradient * 0.0 + 0.0),)  # LINE bprop_div0


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = Block(), Block()
        self.out = nn.Dense(8, 3)
        if case == "lstm_div0":
            self.lstm = nn.LSTM(8, 8, batch_first=True)
        if case == "bprop_div0":
            self.halved = Halved()

    def construct(self, x):
        if case == "lstm_div0":
            x = self.lstm(ops.stack((x, x), 1))[0][:, -1]
            x = x / (x * 0.0)  # LINE lstm_div0
        if case == "bprop_div0":
            x = self.halved(self.out(x))
            return x
        x = self.b(self.a(ops.tanh(x)))
        if case in ("branches", "branches_log0"):
            turns = 0
            while turns < 3:
                x = x * 0.5 + 1.0
                turns = turns + 1
            if x.sum() > 0.0:
                x = x - 0.25
            if case == "branches_log0":
                x = ops.log(x * 0.0)  # LINE branches_log0
        if case in ("root0", "steps_root0"):
            x = ops.sqrt(x)  # LINE root0
        if case == "half":
            x = ops.cast(x, ms.float16)
            x = ops.cast(x * x, ms.float32)  # LINE half
        return self.out(x)


MASKED = case == "transformer_masked"
LATER = Tensor(np.triu(np.ones((8, 8)), 1) > 0)
NOT_LATER = Tensor(np.where(LATER.asnumpy(), -np.inf, 0).astype(np.float32))


class Attention(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.qkv, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.drop = nn.Dropout(p=0.1)
        self.softmax = nn.Softmax(-1)

    def construct(self, x):
        batch, length, width = x.shape
        x = (
            self.qkv(x)
            .reshape((batch, length, 3, self.heads, self.each))
            .transpose((2, 0, 3, 1, 4))
        )
        q, k, v = x[0], x[1], x[2]
        scores = ops.matmul(q, k.transpose((0, 1, 3, 2))) / 4.0
        if MASKED:
            scores = scores.masked_fill(LATER, float("-inf")) + NOT_LATER
        weights = self.softmax(scores)
        x = ops.matmul(self.drop(weights), v).transpose((0, 2, 1, 3))
        return self.out(x.reshape((batch, length, width)))


class Transformer(nn.Cell):
    def __init__(self, layers=2, width=32, heads=2, words=11):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.attention = nn.CellList([Attention(width, heads) for _ in range(layers)])
        self.norms = nn.CellList([nn.LayerNorm((width,)) for _ in range(layers)])
        self.wide = nn.CellList([nn.Dense(width, 4 * width) for _ in range(layers)])
        self.narrow = nn.CellList([nn.Dense(4 * width, width) for _ in range(layers)])
        self.gelu, self.head, self.words = nn.GELU(), nn.Dense(width, words), words

    def construct(self, x):
        x = self.table(x)
        for attention, norm, wide, narrow in zip(
            self.attention, self.norms, self.wide, self.narrow
        ):
            x = x + attention(norm(x))
            x = x + narrow(self.gelu(wide(x)))
        return self.head(x).reshape((-1, self.words))


def batch(step):
    if case.startswith("transformer"):
        words = np.random.randint(0, 11, (4, 9)).astype(np.int32)
        return Tensor(words[:, :-1]), Tensor(words[:, 1:].reshape(-1))
    x = np.random.randn(6, 8).astype(np.float32)
    return Tensor(x), Tensor(np.random.randint(0, 3, (6,)).astype(np.int32))


def disturb(step):
    if case == "jit_log0" and step == 3:
        net.b.sharpness.set_data(Tensor(1e4, ms.float32))
    if case == "half" and step == 3:
        net.b.fc.bias.set_data(Tensor(np.full((8,), 1000.0, np.float32)))
    if case == "broken" and step == 3:
        broken = net.b.fc.weight.asnumpy().copy()
        broken[0, 5] = np.nan
        net.b.fc.weight.set_data(Tensor(broken))


net = Transformer() if case.startswith("transformer") else Net()
net.set_train()
if case == "frozen":
    for parameter in net.a.get_parameters():
        parameter.requires_grad = False
rate = 1e30 if case == "rate" else 0.05
optimizer = nn.Momentum(net.trainable_params(), rate, 0.9)
loss_fn = nn.CrossEntropyLoss()
if case == "transformer_half":
    net = ms.amp.auto_mixed_precision(net, "O2")
losses, steps = [], 4 if case.startswith("transformer") else 6


def forward(x, y):
    return loss_fn(net(x), y)


def by_hand():
    scaler = ms.amp.StaticLossScaler(128.0) if case == "transformer_half" else None

    def scaled(x, y):
        loss = forward(x, y)
        return scaler.scale(loss) if scaler else loss

    gradient = ms.value_and_grad(scaled, None, optimizer.parameters)
    for step in range(steps):
        disturb(step)
        x, y = batch(step)
        loss, gradients = gradient(x, y)
        if scaler:
            loss, gradients = scaler.unscale(loss), scaler.unscale(gradients)
        optimizer(gradients)
        losses.append(float(loss.asnumpy()))


def steps_by_hand():
    """No optimizer: nothing but the program knows where a step ends."""
    sys.path.append(os.path.join(os.path.dirname(__file__), "../../../python"))
    import msdbg_agent  # does nothing without a debugger

    weights = net.trainable_params()
    gradient = ms.value_and_grad(forward, None, weights)
    for step in range(steps):
        msdbg_agent.step_begin(net)
        loss, gradients = gradient(*batch(step))
        for weight, change in zip(weights, gradients):
            weight.set_data(weight - 0.05 * change)
        msdbg_agent.step_end()
        losses.append(float(loss.asnumpy()))


def one_step_cells():
    with_loss = nn.WithLossCell(net, loss_fn)
    if case == "transformer_half":
        train = nn.TrainOneStepWithLossScaleCell(with_loss, optimizer, Tensor(128.0, ms.float32))
    else:
        train = nn.TrainOneStepCell(with_loss, optimizer)
    train.set_train()
    for step in range(steps):
        disturb(step)
        loss = train(*batch(step))
        losses.append(float((loss[0] if isinstance(loss, tuple) else loss).asnumpy()))


if case == "bench":
    steps = 0
run = by_hand if pynative else one_step_cells
if case in ("steps", "steps_root0"):
    run = steps_by_hand
if case == "session":
    import msdbg_agent

    with msdbg_agent.session(net, optimizer):
        run()
elif case == "callback":
    import msdbg_agent

    data = ms.dataset.GeneratorDataset(
        [tuple(each.asnumpy() for each in batch(step)) for step in range(steps)],
        ["x", "y"],
        shuffle=False,
    )

    class Keep(ms.train.Callback):
        def on_train_step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs.asnumpy()))

    ms.train.Model(net, loss_fn, optimizer).train(
        1, data, callbacks=[msdbg_agent.Callback(), Keep()], dataset_sink_mode=False
    )
else:
    run()
digest = hashlib.sha256()
for parameter in net.get_parameters():
    digest.update(parameter.asnumpy().tobytes())
print("losses", " ".join(float(loss).hex() for loss in losses))
print("digest", digest.hexdigest())
