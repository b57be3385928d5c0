"""The judge of benchmark comparisons: two commits measured in interleaved rounds, one verdict that can be trusted.

It reads results that asv has written and says per benchmark whether the newer commit is slower, faster, unchanged or
not to be told from noise, and sums that up in an exit code. It fails closed: anything missing, failed or measured on
another machine or build is a broken environment, never "no regression". It measures nothing itself; ``driver`` makes
asv do so.

Contents:
    statistics  the interval of a ratio from paired rounds; a benchmark's noise floor
    results     asv's files
    comparison  a folder of rounds of two commits
    verdict     the decision
    summary     its text
    driver      asv in interleaved rounds
    evidence    what goes with a regression: its commit, a diff of recordings
    plants      slow-downs to be planted
    campaign    how the judge is judged: nothing changed, or something planted
    __main__    ``python -m judge``
"""
