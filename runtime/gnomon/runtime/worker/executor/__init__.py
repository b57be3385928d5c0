"""Where user code runs: the executor of a worker, as a child process or as threads of the agent's own process.

Everything of the user's is unpickled, run, pickled and (but for plain data) freed on the executor's threads; with one
thread it is one thread on every path. The executor knows runs, values and code by number; it knows nothing of
schedulers, peers, priorities or placement: the agent hands it what can run now, dependencies first.

This package imports nothing, for a child process starts with it and must be up soon.

Contents:
    interface  what an agent sees of an executor: settings, and the protocol that both kinds follow
    thread     ThreadExecutor: in the agent's process
    process    ProcessExecutor: a child process, its supervision and rebirth
    death      why a child process died, in words
    child      main program of the child process
    link       messages and file descriptors over a unix socket
    page       which runs are under way, in memory that outlives the child
    runner     the engine of both kinds: takes messages, owns the rooms below
    pool       threads and their queues
    running    one run: decode, call, encode
    serving    values made ready to leave
    store      values and code, decoded when first needed
    outgoing   outcomes on their way to the agent, in batches
    failing    exceptions as records, and nothing kept alive by them
    context    what a task can know of where it runs
"""
