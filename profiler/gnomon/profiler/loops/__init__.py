"""The monitor of an event loop: its lag, its working time, and each stall with its cause.

Contents:
    monitor  watches one loop
    polling  work told apart from waiting in the poll
    stalls   what is recorded of a stall, and the evidence for it
    causes   what the evidence means
"""
