"""The switch for unmodified programs: attaches behind `import torch` or `import mindspore`.

Imported by msdbg_agent.pth in every process that starts with ENABLE_MS_DEBUGGER=1.
"""

from ._imports import after_import

FRAMEWORKS = ("torch", "mindspore")


def _attach():
    import msdbg_agent

    msdbg_agent.attach()


def install():
    for name in FRAMEWORKS:
        after_import(name, _attach)


install()
