"""The demo: a sample conversation of nine months, remembered on the days it happened, and a walk through it.

Nothing here prints: the walk is a stream of acts, each the very call that was made and what it returned.
"""

from __future__ import annotations

from told.faces.demo.story import TODAY, Clock, Line, remember, story
from told.faces.demo.walk import FILE, Act, opened, walk

__all__ = ["FILE", "TODAY", "Act", "Clock", "Line", "opened", "remember", "story", "walk"]
