"""What is known of a step without tracing it: the gradients of parameters, and the loss."""

import torch

from .._names import library_folder, moved_frames
from .scopes import LOSS
from .tensors import dtype_name, is_plain, own_part, shape_of

_HIDDEN = (library_folder(torch),)


class Light:
    def __init__(self, recorder, modules, values):
        self.recorder, self.modules, self.values = recorder, modules, values
        self.losses = 0  # backward passes of this step
        self._nodes = {}  # (path of its module, name) of a parameter -> node of its gradient
        self._seen, self._count = None, 0  # parameters that describe() has seen
        self._nameless = []  # of these, the ones without a node
        self._told = set()  # gradients of this step
        self._unwanted = False  # these are not

    def describe(self):
        """The nodes are known before the first step."""
        entries = self.modules.entries
        if self._seen is not entries or self._count != len(entries):
            self._seen, self._count = entries, len(entries)
            self._nameless = [each for each in entries if each[1:3] not in self._nodes]
        if self._nameless:
            self._nameless = [each for each in self._nameless if not self._name(each)]
        if not self.losses and not self.recorder.described:
            self.recorder.light_node(LOSS, "Loss")
        self.losses, self._told, self._unwanted = 0, set(), False

    def _name(self, entry):
        """Makes the node of a parameter's gradient, if it has one."""
        tensor = own_part(entry[3].get(entry[2]))
        if tensor is None or not tensor.requires_grad or not is_plain(tensor):
            return False
        scope = "Gradients/%s/Grad_%s" % (entry[1], entry[2])
        node = self._nodes[entry[1:3]] = self.recorder.light_node(
            scope, "Gradient", dtype_name(tensor), shape_of(tensor)
        )
        node.gradient_of = entry[0]
        return True

    def loss(self, tensor, traced):
        """backward() is called on this tensor."""
        tensor = own_part(tensor)
        recorder, values = self.recorder, self.values
        known = self.losses == 0
        node = recorder.node(LOSS, "Loss")
        self.losses += 1
        source = values.source(tensor)
        if node.inputs is None or (known and not node.inputs):
            node.inputs = [source] if source else []
            node.outputs = node.outputs or [(dtype_name(tensor) or "float32", shape_of(tensor))]
            node.light = True
            recorder.dirty = recorder.dirty or bool(node.inputs)
        elif traced and values.all_wanted and source and node.inputs != [source]:
            node.inputs, recorder.dirty = [source], True
        frames = moved_frames(node.frames, _HIDDEN, 4) if traced or not node.frames else None
        if frames is not None:
            node.frames, recorder.dirty = frames, True
            values.defer()
        alias = values.publish_light(node, tensor)
        if not traced and node.inputs and alias is not None:
            # The operator that made the loss: its value is known, too.
            made = recorder.by_name.get(node.inputs[0][0])
            if made is not None:
                values.publish_known(made, node.inputs[0][1], alias)

    def _name_source(self, node, gradient):
        """What made the gradient, unless it is known and has run in this step, too."""
        source = self.values.known(gradient)
        if not source:
            return
        # In a bucket of DistributedDataParallel, the collective changes it in place.
        sources = [source[0], *self.values.changes(gradient, source)]
        if node.inputs == sources:
            return
        known = self.recorder.by_name.get(node.inputs[0][0]) if node.inputs else None
        if (
            not node.inputs
            or (known is not None and known.step != self.recorder.step)
            or len(sources) != len(node.inputs)
        ):
            node.inputs, self.recorder.dirty = sources, True

    def told(self):
        """Whether gradients of this step were told, or nobody wants any."""
        return self._unwanted or bool(self._told)

    def forget_told(self):
        self._told = set()

    def with_gradients(self):
        """ids of the parameters that have a gradient now."""
        held = (entry[3].get(entry[2]) for entry in self.modules.entries)
        return {id(each) for each in held if getattr(each, "grad", None) is not None}

    def gradients(self, traced):
        """Publishes the gradients of all parameters, each once in a step, if any is wanted."""
        if not traced and (self._unwanted or not self.recorder.wants_gradients()):
            self._unwanted = True  # for the rest of the step
            return
        for entry in self.modules.entries:
            node = self._nodes.get(entry[1:3])
            tensor = entry[3].get(entry[2])
            gradient = own_part(getattr(tensor, "grad", None))
            if node is None or gradient is None or node in self._told:
                continue
            self._told.add(node)
            self.recorder.light_ran(node)
            if traced:
                self._name_source(node, gradient)
            if self.values.arriving:
                self.values.arrived((gradient,), {})
            of = self.values.unchanged(gradient) if traced else None
            self.values.publish_light(node, gradient, of)
            if traced:
                self.values.name(gradient, node.name)  # that is what the optimizer reads
        self.values.flag_light()
