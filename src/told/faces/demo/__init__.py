"""The demo: a sample conversation of nine months, remembered on the days it happened, and a walk through it.

Nothing here prints: the walk is a stream of acts, each the very call that was made and what it returned.
"""

from __future__ import annotations

from told.faces.demo.story import DEMO_NOW, DemoClock, StoryLine, load_story, replay_story
from told.faces.demo.walk import STORE_FILE, DemoAct, iter_acts, open_demo_memory

__all__ = [
    "STORE_FILE",
    "DEMO_NOW",
    "DemoAct",
    "DemoClock",
    "StoryLine",
    "open_demo_memory",
    "replay_story",
    "load_story",
    "iter_acts",
]
