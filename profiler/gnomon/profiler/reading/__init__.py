"""How the stacks of all threads are read, and the heartbeat at which monitors are shown them.

Contents:
    plain    how the interpreter is asked, and what is to beware of (``native.pxd`` is the same for compiled code)
    looks    where all threads are at one moment: cheap for innermost calls, dearer for whole stacks
    ticker   the thread that shows looks to monitors
    weighed  some stacks of one thread, weighed by time
"""
