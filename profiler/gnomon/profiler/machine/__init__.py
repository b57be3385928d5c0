"""The monitor of the process and its machine: processor, memory, descriptors, network, disk.

Contents:
    system       all of it in rows, one at a time
    process      counters of this process
    descendants  the processes that it started
    host         counters of the machine
    cgroup       limits that the process lives under
"""
