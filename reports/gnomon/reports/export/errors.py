"""What goes wrong in an export, apart from the file system.

Contents: ExportError.
"""

from __future__ import annotations

__all__ = ["ExportError"]


class ExportError(ValueError):
    """A format that is unknown, or needs a package that isn't installed."""
