"""Whole clusters in one process without a socket, a thread or a clock: both brains joined by a seeded fake wire.

A seed determines everything that happens: graphs, delays, deaths, cancels. While a cluster runs, faults come; then it
is healed and drained, and every future must have ended as a model of the clients' wishes allows. ``python -m
tests.simulation SEED`` replays one seed, ``--seeds A-B`` runs a campaign.

Contents:
    world        virtual clock, links with delays, the trace
    definitions  what tasks do and what they must yield
    executor     a fake executor that computes values
    worker       a worker's brain with its executor, data server and fetches
    scheduler    the scheduler's brain with its streams
    client       a model of the client's side, which checks what it is told
    scenario     one cluster: actors, faults, healing, the last checks
"""
