"""What a program's threads say about themselves, to be seen in profiles beside the code that ran.

Contents:
    labels    what a thread works at, such as the kind of a task
    regions   named parts of the work, with exact counts and times
    markers   things in a stack that are no code
    threads   one record for each thread, found by the thread at once and by others by ident
    wrapping  a function inside a region or label, coroutines included
"""

from __future__ import annotations

from gnomon.profiler.build import use_chosen_build

use_chosen_build(__name__, __path__)
