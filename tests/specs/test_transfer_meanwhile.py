"""A ledger is exported while others go on: with all they did, or not at all."""

import io

import pytest

from histories import stage
from told.errors import Conflict


class Interrupted(io.BytesIO):
    """A file that lets something else happen after its first line."""

    def __init__(self, happen):
        super().__init__()
        self.happen = [happen]

    def write(self, data):
        written = super().write(data)
        if self.happen:
            self.happen.pop()()
        return written


@pytest.fixture(params=["ram", "sqlite"])
def here(request):
    with stage(request.param, embedder=None) as opened:
        long_told(opened, "before")
        yield opened


def long_told(here, word):
    """More entries than an export reads at once."""
    here.memory.add([f"{word} {n}" for n in range(520)], user_id="u", infer=False)


@pytest.mark.parametrize("anew", [True, False], ids=["another ledger", "nothing"])
@pytest.mark.parametrize("lines", [2, 1000])
def test_an_export_never_passes_off_two_ledgers_or_half_a_one_as_one(here, anew, lines):
    def happen():
        if target.getvalue().count(b"\n") < lines:
            return target.happen.append(happen)
        here.memory.reset()
        return long_told(here, "after") if anew else None

    target = Interrupted(happen)
    with pytest.raises(Conflict, match="Export it again"):
        here.memory.export(target)


def test_an_export_holds_what_others_write_and_erase_meanwhile(here):
    first = here.memory.get_all(user_id="u", limit=1)["results"][0]["id"]

    def happen():
        here.memory.add("meanwhile", user_id="u", infer=False)
        here.memory.erase(first)

    target = Interrupted(happen)
    here.memory.export(target)
    with stage("ram", embedder=None) as there:
        there.memory.import_(target.getvalue())
        assert there.exported() == here.exported()
