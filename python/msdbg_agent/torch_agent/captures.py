"""CUDA graphs: operators that are captured once and then replayed, without Python."""

import weakref


class _Captured:
    """What a graph does when it is replayed."""

    __slots__ = ("losses", "optimizers")

    def __init__(self):
        self.losses, self.optimizers = [], []


class Captures:
    """A graph in which an optimizer ran is a step each time it is replayed. Parameters, gradients
    and losses stay where they are; nothing of ours may run while a graph is captured."""

    def __init__(self, training):
        self._training = training
        self.open = False  # something is captured or prepared: what runs is no step
        self._depth = 0
        self._now = None  # what is captured
        self._graphs = weakref.WeakKeyDictionary()

    def pause(self):
        self._depth += 1
        self.open = True

    def resume(self):
        self._depth -= 1
        self.open = self._depth > 0

    def begin(self, graph):
        if self._now is None:
            self.pause()
        self._now = self._graphs[graph] = _Captured()

    def end(self):
        if self._now is not None:
            self._now = None
            self.resume()

    def backward(self, losses):
        if self._now is not None:
            self._now.losses.extend(each.detach() for each in losses)

    def optimizer(self, optimizer):
        if self._now is not None:
            self._now.optimizers.append(weakref.ref(optimizer))

    def _optimizers(self, graph):
        captured = self._graphs.get(graph)
        found = [each() for each in captured.optimizers] if captured is not None else ()
        return [each for each in found if each is not None]

    def replay_begins(self, graph):
        training = self._training
        optimizers = self._optimizers(graph)
        if not optimizers or training.recorder.off or training.steps != "optimizer":
            return
        training.begin()
        if training.recorder.wants_traced():
            training.say_once("the operators inside of a CUDA graph are not seen")
        for optimizer in optimizers:
            training.optimizer_begins(optimizer)

    def replay_ended(self, graph):
        training = self._training
        optimizers = self._optimizers(graph)
        if not optimizers or not training.recorder.open or training.steps != "optimizer":
            return
        for loss in self._graphs[graph].losses:
            training.light.loss(loss, False)
        for optimizer in optimizers:
            training.optimizer_ends(optimizer)
