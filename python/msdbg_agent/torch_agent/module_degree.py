"""The degree `module`: what each module gives and the gradient of that, without its operators."""

import functools

import torch

from .._names import library_folder, part, user_frames
from .tensors import dtype_name, is_plain, shape_of, tensors_in

_HIDDEN = (library_folder(torch),)


class ModuleDegree:
    """`guarded` calls a function of ours; a fault in it does not reach the training."""

    def __init__(self, recorder, modules, values, guarded):
        self.recorder, self.modules, self.values = recorder, modules, values
        self._guarded = guarded

    def ran(self, module, args, output):
        """What a module gave, and the gradient of that when it comes."""
        path = self.modules.path(module)
        outs = [each for each in tensors_in((output,)) if is_plain(each)]
        if path is None or not outs:
            return
        kind = part(type(module).__name__)
        node = self.recorder.node(path, kind)
        self._describe(node, args, outs)
        self.values.note(node, outs)
        for slot, out in enumerate(outs):
            if out.requires_grad and slot == 0:
                out.register_hook(
                    functools.partial(
                        self._gradient_came, "Gradients/%s/Grad_%s" % (path, kind), kind, node
                    )
                )

    def _describe(self, node, args, outs):
        if node.inputs is None:
            found = (self.values.source(each) for each in tensors_in(args))
            node.inputs = [source for source in found if source and source[0] != node.name]
            node.outputs = [(dtype_name(each), shape_of(each)) for each in outs]
            node.frames = user_frames(_HIDDEN, 4)

    def _gradient_came(self, scope, kind, forward, gradient):
        # The step may have ended since: a graph that is kept and used again.
        if self.recorder.open and is_plain(gradient):
            node = self.recorder.node(scope, kind)
            if node.inputs is None:
                node.inputs, node.frames = [(forward.name, 0)], forward.frames
                node.outputs = [(dtype_name(gradient), shape_of(gradient))]
            self._guarded(self.values.note, node, (gradient,))
