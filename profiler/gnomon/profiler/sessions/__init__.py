"""What was sampled, as a value that can be saved, sent, merged, compared, filtered and shown.

Contents:
    session     the record itself
    names       modules of functions, and which functions merely wait
    processors  filters: session in, session out
    calltree    the tree that is shown
"""
