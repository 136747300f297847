"""`python -m msdbg`: runs the program that the wheel has installed."""
import os
import sys
from importlib.metadata import files


def program():
    """The path of bin/msdbg: environments put it into different places, and the list of installed files knows it."""
    for file in files("msdbg") or []:
        if file.name == "msdbg" and file.parent.name == "bin":
            return os.path.realpath(file.locate())
    sys.exit("msdbg: the installed program was not found; install it again: pip install --force-reinstall msdbg")


if __name__ == "__main__":
    path = program()
    os.execv(path, [path] + sys.argv[1:])
