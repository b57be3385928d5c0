"""The live dashboard: a process of its own that shows a running cluster as the report shows a finished run.

It holds one connection to the scheduler and asks nothing while nobody looks. Everything but the charts works without
Bokeh.

Contents:
    server        ``Dashboard``: the process's parts put together, and its life
    feed          the one stream from the scheduler, and its reconnecting
    looks         who looks, and when to send them something
    model         all that is known; pure
    counters      how the cluster stands at one moment
    rolling       rows that are kept, and windows cut out of them
    stretches, states, totals   what rolling is made of: rows by time, demand by time, sums without rows
    windows       the account of any window, second by second
    history       the whole run in bins
    access, guard who may see it; the door in front of everything
    mounts        pages, charts and what machines ask in one web application
    api, tables, metrics, plain, old_routes   what machines ask; the page without websockets; addresses of before
    context       what pages are given
    pages/        the pages and charts
    cli           ``gnomon dashboard``
"""

from __future__ import annotations
