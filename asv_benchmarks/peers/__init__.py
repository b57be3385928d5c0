"""gnomon and its peers side by side: the same workloads, one after the other, round after round, on one machine.

Each system runs in a child process of its own and is started afresh in every round, so that no one idles beside
another and drift of the machine hits all alike. Measured are seconds per task and CPU per task by role.

Contents:
    workloads    what is run, and the functions that tasks call
    systems      how each system is started and fed, and which of its processes play which role
    measurement  one system's round: times and CPU
    takes        what was measured so far
    page         the table and the plot in ``docs/performance.md``
    __main__     ``python -m peers``
"""
