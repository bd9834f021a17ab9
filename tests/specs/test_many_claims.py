"""One message that makes more claims than a conversation does."""

import pytest

from told import Memory

FRUIT = (
    "apples pears plums figs dates grapes lemons limes melons kiwis mangos olives cherries quinces"
).split()
TOLD_OF = "One message makes 14 claims; the first 12 were taken."


@pytest.mark.parametrize(("count", "warned"), [(12, []), (14, [TOLD_OF])])
def test_claims_that_are_not_taken_are_told_of(count, warned):
    with Memory("ram://", embedder="none") as memory:
        receipt = memory.add(" ".join(f"I like {fruit}." for fruit in FRUIT[:count]), user_id="u")
        assert len(receipt["results"]) == 12
        assert receipt.get("warnings", []) == warned
