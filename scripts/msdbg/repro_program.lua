-- The Python program of a repro directory. It needs NumPy; with the word `mindspore` it runs the framework's own operator.
local core = require "msdbg.core"

local concat, format = table.concat, string.format

local M = {}

-- Operators in NumPy; `x` are the inputs, `attr(name, default)` an attribute.
local NUMPY = {
  Abs = "np.abs(x[0])", Add = "x[0] + x[1]", AddN = "sum(x[1:], x[0])", ApplyMomentum = "apply_momentum(*x[:5])",
  AssignAdd = "x[0] + x[1]", BatchMatMul = "matmul(x)", BiasAdd = "bias_add(x[0], x[1])",
  BiasAddGrad = "x[0].sum(axis=tuple(i for i in range(x[0].ndim) if i != 1))", Ceil = "np.ceil(x[0])", Cos = "np.cos(x[0])",
  Div = "np.true_divide(x[0], x[1])", Equal = "x[0] == x[1]", Exp = "np.exp(x[0])", ExpandDims = "reshaped(x[0])",
  Expm1 = "np.expm1(x[0])", Flatten = "reshaped(x[0])", Floor = "np.floor(x[0])", Greater = "x[0] > x[1]",
  GreaterEqual = "x[0] >= x[1]", Identity = "x[0]", IsFinite = "np.isfinite(x[0])", IsInf = "np.isinf(x[0])",
  IsNan = "np.isnan(x[0])", Less = "x[0] < x[1]", LessEqual = "x[0] <= x[1]", Log = "np.log(x[0])", Log1p = "np.log1p(x[0])",
  LogSoftmax = "x[0] - log_sum_exp(x[0], axis())", LogicalAnd = "np.logical_and(x[0], x[1])", LogicalNot = "np.logical_not(x[0])",
  LogicalOr = "np.logical_or(x[0], x[1])", MatMul = "matmul(x)", Maximum = "np.maximum(x[0], x[1])",
  Minimum = "np.minimum(x[0], x[1])", Mul = "x[0] * x[1]", Neg = "-x[0]", NotEqual = "x[0] != x[1]", Pow = "np.power(x[0], x[1])",
  ReLU = "np.where(x[0] > 0, x[0], 0)", ReLU6 = "np.minimum(np.maximum(x[0], 0), 6)", RealDiv = "np.true_divide(x[0], x[1])",
  Reciprocal = "np.reciprocal(x[0])", ReluGrad = "np.where(x[1] > 0, x[0], 0)", Reshape = "reshaped(x[0])",
  Rsqrt = "1 / np.sqrt(x[0])", Sigmoid = "1 / (1 + np.exp(-x[0]))", Sign = "np.sign(x[0])", Sin = "np.sin(x[0])",
  Softmax = "np.exp(x[0] - log_sum_exp(x[0], axis()))", SparseSoftmaxCrossEntropyWithLogits = "sparse_cross_entropy(x[0], x[1])",
  Sqrt = "np.sqrt(x[0])", Square = "np.square(x[0])", SquaredDifference = "np.square(x[0] - x[1])", Squeeze = "reshaped(x[0])",
  Sub = "x[0] - x[1]", Tanh = "np.tanh(x[0])", ZerosLike = "np.zeros_like(x[0])",
}

--- Whether the program can run this operator without the framework.
---@param op string
---@return boolean
function M.in_numpy(op) return NUMPY[op] ~= nil end

--- The word behind `repro.py` that runs it in the framework; "" where NumPy will do.
---@param bundle table
---@return string
function M.word(bundle)
  if bundle.framework == "pytorch" then return " torch" end
  return NUMPY[bundle.op] and not bundle.framework and "" or " mindspore"
end

-- A recorded call: the function of the framework, with the arguments in their places.
local CALL = [==[
def call_again(x):
    prefix, name = node["name"].split(".")[:2]
    if node["framework"] == "pytorch":
        import torch
        homes = {"Functional": torch.nn.functional, "Torch": torch, "Tensor": torch.Tensor}
        is_tensor = torch.is_tensor

        def tensor(value, entry):
            made = torch.from_numpy(np.array(value))
            return made.bfloat16() if entry["dtype"] == "bfloat16" else made

        def array(value):
            value = value.detach()
            return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    else:
        import mindspore
        homes = {"Functional": mindspore.ops, "Tensor": mindspore.Tensor, "Mint": getattr(mindspore, "mint", None)}

        def is_tensor(value):
            return isinstance(value, mindspore.Tensor)

        def tensor(value, entry):
            made = mindspore.Tensor(value)
            return made.astype(mindspore.bfloat16) if entry["dtype"] == "bfloat16" else made

        def array(value):
            return (value.astype(mindspore.float32) if value.dtype == mindspore.bfloat16 else value).asnumpy()
    function = getattr(homes.get(prefix), name, None)
    if function is None or not node["name"].split("#")[0].endswith(".forward"):
        sys.exit("%s cannot be called again: this works for forward calls of %s" % (node["name"], ", ".join(homes)))

    def value(text):
        if text.startswith("input:"):
            slot = int(text[6:])
            return tensor(x[slot], node["inputs"][slot])
        words = {"null": None, "None": None, "NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
        text = text.strip()
        if text.startswith("torch."):
            return getattr(torch, text[6:], text)
        return words[text] if text in words else literal(text)

    def filled(tree):
        """Nested places such as {0: {1: value}} as lists."""
        if not isinstance(tree, dict):
            return tree
        if all(key.isdigit() for key in tree):
            return [filled(tree.get(str(i))) for i in range(max(map(int, tree)) + 1)] if tree else []
        return {key: filled(each) for key, each in tree.items()}

    places = {"input_args": {}, "input_kwargs": {}}
    for path, text in node["arguments"].items():
        parts = path.split(".")
        if parts[0] not in places:
            if path in ("group", "group_ranks", "recomputed"):
                continue
            parts = ["input_kwargs"] + parts
        at = places
        for part in parts[:-1]:
            at = at.setdefault(part, {})
        at[parts[-1]] = value(text)
    named = {key: filled(each) for key, each in places["input_kwargs"].items()}
    made = function(*filled(places["input_args"]), **named)
    found = []

    def collect(result):
        if is_tensor(result):
            found.append(array(result))
        elif isinstance(result, dict):
            for each in result.values():
                collect(each)
        elif isinstance(result, (list, tuple)):
            for each in result:
                collect(each)

    collect(made)
    return tuple(found)


]==]

local BODY = [==[
import ast
import inspect
import json
import os
import sys

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "node.json"), encoding="utf-8") as file:
    node = json.load(file)


def load(entry):
    """The value of an input or output; bfloat16 becomes float32, which holds it exactly."""
    if "constant" in entry:
        return literal(entry["constant"])
    if "file" not in entry:
        sys.exit("%s was not dumped: %s" % (entry["slot"], entry.get("missing", "")))
    array = np.load(os.path.join(here, entry["file"]))
    if entry["dtype"] == "bfloat16":
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array


def literal(text):
    """An attribute as a Python value; a graph prints one-element tuples without a comma."""
    text = text.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
    return (value,) if text.startswith("(") and not isinstance(value, tuple) else value


def attr(name, default=None):
    return literal(node["attributes"][name]) if name in node["attributes"] else default


def flag(position, name, x):
    """An option that older releases write as an attribute, newer ones as an input."""
    return bool(np.asarray(x[position]).item()) if len(x) > position else bool(attr(name, False))


def axis(x=None):
    value = attr("axis", -1)
    return value if isinstance(value, (int, tuple)) else -1


def log_sum_exp(x, at):
    largest = np.max(x, axis=at, keepdims=True)
    return largest + np.log(np.sum(np.exp(x - largest), axis=at, keepdims=True))


def bias_add(x, bias):
    return x + bias.reshape((1, -1) + (1,) * (x.ndim - 2))


def matmul(x):
    a = np.swapaxes(x[0], -1, -2) if flag(2, "transpose_a", x) else x[0]
    b = np.swapaxes(x[1], -1, -2) if flag(3, "transpose_b", x) else x[1]
    return np.matmul(a, b)


def reshaped(x):
    return x.reshape(node["outputs"][0].get("shape", x.shape))


def apply_momentum(variable, accumulation, rate, gradient, momentum):
    accumulation = accumulation * momentum + gradient
    step = gradient + accumulation * momentum if attr("use_nesterov", False) else accumulation
    return variable - rate * step


def sparse_cross_entropy(logits, labels):
    log_of = logits - log_sum_exp(logits, -1)
    rows = np.arange(len(logits))
    if not attr("is_grad", False):
        return -np.mean(log_of[rows, labels])
    gradient = np.exp(log_of)
    gradient[rows, labels] -= 1
    return gradient * attr("sens", 1.0) / len(logits)


def in_numpy(x):
    @NUMPY@


def in_mindspore(x):
    import importlib

    import mindspore
    kind = None
    for module in ("operations", "auto_generate", "operations._grad_ops", "operations._inner_ops"):
        try:
            kind = kind or getattr(importlib.import_module("mindspore.ops." + module), node["op"], None)
        except ImportError:
            pass
    if kind is None:
        sys.exit("this MindSpore has no operator %s" % node["op"])
    accepted = {name: one for name, one in inspect.signature(kind.__init__).parameters.items() if name != "self"}

    def usable(name, value):
        # A graph holds the number of an enumerator where Python takes its name.
        return not (isinstance(accepted[name].default, str) and not isinstance(value, str))

    options = {name: literal(text) for name, text in node["attributes"].items() if name in accepted}
    options = {name: value for name, value in options.items() if usable(name, value)}
    for name in ("kernel_size", "strides"):
        if isinstance(options.get(name), tuple) and len(options[name]) == 4:
            options[name] = options[name][2:]
    tensors = []
    for i, value in enumerate(x):
        if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biu":
            value = value.item()  # an option
        elif isinstance(value, np.ndarray):
            if node["inputs"][i].get("written"):
                value = mindspore.Parameter(mindspore.Tensor(value))
                tensors.append(value)
                continue
            value = mindspore.Tensor(value)
            if node["inputs"][i].get("dtype") == "bfloat16":
                value = value.astype(mindspore.bfloat16)
        tensors.append(value)
    try:
        made = kind(**options)(*tensors)
    except TypeError as first:
        # Inputs that are options of the operator's constructor in Python.
        names = list(accepted)
        tail = dict(zip(names, tensors[-len(names):])) if names else {}
        used = {name: value for name, value in tail.items() if usable(name, value)}
        if any(isinstance(value, mindspore.Tensor) for value in used.values()):
            raise first
        made = kind(**{**options, **used})(*tensors[: len(tensors) - len(tail)])
    made = made if isinstance(made, (tuple, list)) else (made,)
    return tuple(each.astype(mindspore.float32).asnumpy() if each.dtype == mindspore.bfloat16 else each.asnumpy() for each in made)


def compare(entry, made):
    """One line about an output; False if it differs by more than rounding can explain."""
    if "file" not in entry:
        print("%s: not dumped, computed %s" % (entry["slot"], made.shape))
        return True
    dumped = load(entry)
    if dumped.shape != made.shape:
        print("%s: dumped with shape %s, computed with %s" % (entry["slot"], dumped.shape, made.shape))
        return False
    counts = ["%d %s in the dump, %d computed" % (np.sum(test(dumped)), name, np.sum(test(made)))
              for name, test in (("NaN", np.isnan), ("Inf", np.isinf))
              if dumped.dtype.kind in "fc" and (test(dumped).any() or test(made).any())]
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(entry["dtype"], 1e-4)
    close = np.isclose(dumped, made, rtol=tolerance, atol=tolerance * 1e-2, equal_nan=True)
    finite = np.isfinite(dumped) & np.isfinite(made)
    largest = np.max(np.abs(dumped[finite].astype(np.float64) - made[finite])) if finite.any() else 0
    print("%s: %d of %d elements agree, largest difference %.4g%s" % (
        entry["slot"], close.sum(), close.size, largest, "".join("; " + text for text in counts)))
    return bool(close.all())


def main():
    framework = sys.argv[1:] == ["@WORD@"]
    if sys.argv[1:] and not framework:
        sys.exit("usage: repro.py [@WORD@]")
    x = [load(entry) for entry in node["inputs"]]
    with np.errstate(all="ignore"):
        made = @FRAMEWORK@(x) if framework else in_numpy(x)
    made = made if isinstance(made, tuple) else (made,)
    print("%s  %s, step %d of %s" % (node["name"], node["op"], node["step"], node["dump"]))
    agrees = [compare(entry, np.asarray(value)) for entry, value in zip(node["outputs"], made)]
    return 0 if all(agrees) else 1


if __name__ == "__main__":
    sys.exit(main())
]==]

--- The program for one operator; what it reads is in node.json beside it.
---@param bundle table
---@return string
function M.program(bundle)
  local calls = bundle.framework ~= nil
  local numpy = not calls and NUMPY[bundle.op]
  local word = calls and M.word(bundle):sub(2) or "mindspore"
  local name = word == "torch" and "PyTorch" or "MindSpore"
  local head = {
    "#!/usr/bin/env python3",
    "# One operator of a training, to run again: " .. core.printable(bundle.op) .. ", written by msdbg " .. bundle.msdbg .. ".",
    "#",
    numpy and "#   python3 repro.py             with NumPy" or "#   NumPy alone cannot compute this operator.",
    format("#   python3 repro.py %-9s   with %s of the installed %s", word, calls and "the function" or "the operator", name),
    "#",
    "# It prints how far the result is from the dumped one: status 0 if they agree, 1 if they differ.",
    "",
  }
  local filled = {
    WORD = word, FRAMEWORK = calls and "call_again" or "in_mindspore",
    NUMPY = numpy and "return " .. numpy
      or format('sys.exit("NumPy alone cannot compute this operator; run: python3 repro.py %s")', word),
  }
  local body = BODY:gsub("@(%u+)@", filled)
  if calls then
    -- The operators of MindSpore's graphs have no part in a recorded call.
    local first, last = body:find("def in_mindspore.-\n\n\n")
    body = body:sub(1, first - 1) .. CALL .. body:sub(last + 1)
  end
  return concat(head, "\n") .. body
end

return M
