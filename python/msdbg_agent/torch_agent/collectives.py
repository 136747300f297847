"""Which ranks a collective joins, as attributes of its node: those of MindSpore's graphs."""

import torch.distributed as dist

NAMESPACES = {"c10d", "_c10d_functional", "_c10d_functional_autograd"}
# Of c10d's that end in "_", the ones that read what they write. All of these write their first
# argument; their schemas do not say so.
READS_FIRST = {"allreduce_", "allreduce_coalesced_", "broadcast_", "reduce_"}
_ATTRIBUTES = {"root_rank": "root_rank", "dst": "dest_rank", "src": "src_rank", "tag": "sr_tag"}


def attributes_of(schema, args, kwargs):
    """[(name, value)]: the group, and the places in it that the call names."""
    found = []
    for place, argument in enumerate(schema.arguments):
        name = argument.name
        value = args[place] if place < len(args) else kwargs.get(name)
        if name in ("process_group", "group_name"):
            found.extend(_group(value))
        elif name in _ATTRIBUTES and isinstance(value, int):
            root = name == "src" and schema.name.endswith("broadcast")
            found.append(("root_rank" if root else _ATTRIBUTES[name], str(value)))
    return found


def _group(value):
    if isinstance(value, str):
        group = dist.distributed_c10d._resolve_process_group(value)
    elif isinstance(value, dist.ProcessGroup):
        group = value
    else:
        group = dist.ProcessGroup.unbox(value)
    ranks = dist.get_process_group_ranks(group)
    if len(ranks) == dist.get_world_size():
        return [("group", "WORLD")]
    return [("group", str(group.group_name)), ("group_ranks", "(%s)" % ", ".join(map(str, ranks)))]
