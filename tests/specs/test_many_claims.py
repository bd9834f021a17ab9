"""Limit on the claims extracted from one message."""

import pytest

from told import Memory

FRUIT = (
    "apples pears plums figs dates grapes lemons limes melons kiwis mangos olives cherries quinces"
).split()
LIMIT_WARNING = "One message makes 14 claims; the first 12 were taken."


@pytest.mark.parametrize(("count", "warned"), [(12, []), (14, [LIMIT_WARNING])])
def test_claims_over_the_limit_are_reported(count, warned):
    with Memory("ram://", embedder="none") as memory:
        receipt = memory.add(" ".join(f"I like {fruit}." for fruit in FRUIT[:count]), user_id="u")
        assert len(receipt["results"]) == 12
        assert receipt.get("warnings", []) == warned
