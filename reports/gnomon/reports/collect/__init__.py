"""From a cluster's answers, and the calling process, to a recording.

Contents:
    conversation    ``collect``: what is asked, and in which order
    marks           what totals grew by between two marks
    details         runs and transfers
    measurements    what processes measured of themselves
    profiles        what samplers saw, and deep profiles of tasks
    environment     versions, machine, settings of the calling process
    calling_code    the code around the block
"""

from __future__ import annotations

from gnomon.reports.collect.conversation import Ask, collect

__all__ = ["Ask", "collect"]
