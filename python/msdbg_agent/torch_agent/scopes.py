"""Where in a step the program is."""

LOSS = "Default/_loss_fn-Loss"


class Scopes:
    """Where the program is: which module, or which part of a step outside modules."""

    def __init__(self, modules):
        self.modules = modules
        self.stack = []
        self.optimizer = None
        self._outside = "Default"
        self._of_optimizers = {}  # name -> scope; asked for every operator

    def path(self):
        return self.stack[-1] if self.stack else None

    def outside(self):
        if not self.optimizer:
            return self._outside
        scope = self._of_optimizers.get(self.optimizer)
        if scope is None:
            scope = self._of_optimizers[self.optimizer] = "Default/optimizer-%s" % self.optimizer
        return scope

    def network_called(self):
        self._outside = LOSS

    def backward_called(self):
        self._outside = "Gradients/Default/after_backward"

    def push(self, module, open_step):
        path = self.modules.path(module)
        if path is None and open_step:
            path = self.modules.child_path(module, self.path() or "Default")
        self.stack.append(path)

    def pop(self):
        if self.stack:
            self.stack.pop()

    def reset(self):
        self.optimizer, self._outside = None, "Default"
