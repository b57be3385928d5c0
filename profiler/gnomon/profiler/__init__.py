"""The instruments: profiler and monitors that any Python program can use. Imports nothing of ours."""
