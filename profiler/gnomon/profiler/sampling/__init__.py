"""The sampler: its thread, what it looks at, and what it keeps.

Contents:
    sampler   the thread, and what users call
    cadence   when to take the next sample
    handover  what it costs others that the sampler takes the GIL
    roster    the threads that are sampled
    stacks    one look at their stacks
    frames    code objects as small numbers
    tree      the call tree of all that was sampled
    history   counts of samples in buckets of time
    ledger    counts and times of regions from bucket to bucket
    assemble  a session made of all these
"""

from __future__ import annotations

from gnomon.profiler.build import use_chosen_build

use_chosen_build(__name__, __path__)
