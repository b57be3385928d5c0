"""User code that imports nothing of its own."""

import sys


def modules():
    return list(sys.modules)
