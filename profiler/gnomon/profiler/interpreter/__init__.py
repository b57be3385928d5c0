"""Monitors of what the interpreter and the operating system do with the program's threads.

Contents:
    gil         who waits for the GIL, and who holds it
    gc_monitor  pauses for garbage collection
    os_thread   what the operating system knows about one thread
"""
