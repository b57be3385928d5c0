"""Templates of pages: names from users are escaped, and a name that is not given is an error.

Contents: load_template.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2

from gnomon.reports.units import count_text

__all__ = ["load_template"]


@cache
def load_template(path: Path) -> jinja2.Template:
    """The template in a file; its filter ``count`` writes numbers with separators."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(path.parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["count"] = count_text
    return environment.get_template(path.name)
