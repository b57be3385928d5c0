"""What ``gnomon demo`` computes. Workers import these modules for the functions of their tasks, so they import little.

Contents:
    stdlib    counts the syntax nodes of the standard library's own source files
    shuffle   shuffles a dask data frame
"""
