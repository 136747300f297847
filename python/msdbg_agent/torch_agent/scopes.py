"""Where in a step the program is."""

LOSS = "Default/_loss_fn-Loss"


class Scopes:
    """Where the program is: which module, or which part of a step outside modules."""

    def __init__(self, modules):
        self.modules = modules
        self.stack = []
        self.optimizer = None
        self._outside = "Default"

    def path(self):
        return self.stack[-1] if self.stack else None

    def outside(self):
        return "Default/optimizer-%s" % self.optimizer if self.optimizer else self._outside

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
