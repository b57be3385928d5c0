"""What every process of the engine carries to observe itself.

Contents:
    attached   the same for owners that have a loop, started beside it
    carried    what one scheduler, agent or executor starts, stops and sums up
    shared     the monitors of a process, however many carry them
    series     columns of the measurements
    looptime   how long a loop worked and waited
    demand     what idle threads wait for
    lines      what a process logs
    offloop    work that would hold up a loop
"""
