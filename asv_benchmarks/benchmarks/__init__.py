"""What is fast here and what it costs: one module of benchmarks per room, run by asv (see ``docs/benchmarks.md``).

Benchmarks use the rooms' public names and leave nothing behind: no process, thread, socket or file. Parameters are
such that everything runs once in three minutes on two processors; larger ones run with ``GNOMON_BENCHMARKS=full``.

Modules of benchmarks:
    core       the scheduler's brain, by the zero-worker method
    worker     a worker's brain; the hand-off to its executor
    protocol   the user's objects as bytes
    comm       control connections
    transfer   bulk data
    client     what users call
    offload    where to decode: on the loop, on a thread, in the executor
    profiler   instruments
    reports    pages and recordings
    scale      growth with workers and tasks; swarms over sockets

What they share:
    sizes        which parameters run when
    graphs       graphs by shape
    zero_worker  the brain with workers that take no time
    values       the user's objects, by family
    stage        a scheduler and workers in this process
    swarm        a process of many simulated workers
    crew         an executor without an agent
    callgrind    instructions by valgrind
    growth       exponents of growth
    recorded     a workload that leaves a recording
    gate         the few benchmarks that a change is judged by
"""
