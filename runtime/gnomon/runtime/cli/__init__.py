"""The ``gnomon`` command.

A command's module is imported when that command runs, so ``gnomon --help`` answers at once. Other packages add commands
through the entry-point group ``gnomon.commands``; nothing here imports them otherwise.

Contents:
    main        the group of commands, and plugins
    options     parameter types and the options that commands share
    service     running a server in the foreground: signals, pid file, scheduler file, exit codes
    scheduler, worker, demo     the commands
    progress    a progress bar over futures
    workloads/  what the demo computes
"""

from __future__ import annotations

from gnomon.runtime.cli.main import main

__all__ = ["main"]
