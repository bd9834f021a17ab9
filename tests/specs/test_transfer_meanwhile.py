"""Export a ledger during concurrent writes: completely, or not at all."""

import io

import pytest

from histories import stage
from told.errors import Conflict


class InterruptedFile(io.BytesIO):
    """A file that runs a callback after its first line."""

    def __init__(self, callback):
        super().__init__()
        self.callback = [callback]

    def write(self, data):
        written = super().write(data)
        if self.callback:
            self.callback.pop()()
        return written


@pytest.fixture(params=["ram", "sqlite"])
def here(request):
    with stage(request.param, embedder=None) as opened:
        add_many(opened, "before")
        yield opened


def add_many(here, word):
    """Add more entries than one page of an export."""
    here.memory.add([f"{word} {n}" for n in range(520)], user_id="u", infer=False)


@pytest.mark.parametrize("anew", [True, False], ids=["another ledger", "nothing"])
@pytest.mark.parametrize("lines", [2, 1000])
def test_export_fails_when_the_account_is_reset_meanwhile(here, anew, lines):
    def callback():
        if target.getvalue().count(b"\n") < lines:
            return target.callback.append(callback)
        here.memory.reset()
        return add_many(here, "after") if anew else None

    target = InterruptedFile(callback)
    with pytest.raises(Conflict, match="Export it again"):
        here.memory.export(target)


def test_export_includes_concurrent_writes_and_erasures(here):
    first = here.memory.get_all(user_id="u", limit=1)["results"][0]["id"]

    def callback():
        here.memory.add("meanwhile", user_id="u", infer=False)
        here.memory.erase(first)

    target = InterruptedFile(callback)
    here.memory.export(target)
    with stage("ram", embedder=None) as there:
        there.memory.import_(target.getvalue())
        assert there.exported() == here.exported()
