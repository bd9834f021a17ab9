"""Spelling correction before extraction, with spans in the original text."""

from listening import claims, texts
from tables import each_row
from told.extraction.rules.normalise import correct_spelling

MISSPELT = {
    "im alergic to shrimps": ["User is allergic to shrimps"],
    "ive been livng in Porto sicne 2019": ["User lives in Porto"],
    "dont like olives tbh": ["User dislikes olives"],
    "i wrok as a nusre": ["User works as a nurse"],
    "my sisters name is Ola": ["User has a sister named Ola"],
    "we moved too Bristol last yaer": ["User lives in Bristol"],
    "wanna learn japanese": ["User wants to learn japanese"],
    "got a new job w/ Siemens": ["User works at Siemens"],
    "i luv jazz but h8 techno": ["User likes jazz", "User dislikes techno"],
    "im studing law": ["User studies law"],
}


@each_row(("said", "wanted"), MISSPELT.items(), ids=MISSPELT.keys())
def test_misspelt_words_are_corrected(said, wanted):
    assert texts(said) == wanted


def test_a_value_keeps_its_original_spelling():
    said = "Im studing law at the Univeristy of Ghent"
    (claim,) = claims(said)
    assert claim.object == "Univeristy of Ghent"
    assert claim.object in said[slice(*claim.span)]


@each_row(
    "word", ["brought", "though", "paying", "mourning", "managers", "loving", "night", "farther"]
)
def test_a_correct_word_is_unchanged(word):
    assert correct_spelling(f"the {word} of it").text == f"the {word} of it"


def test_words_of_another_language_are_unchanged():
    assert (
        texts("ich wohne im Norden von Kiel") == ["User lives in Norden von Kiel"]
        or texts("ich wohne im Dorf") == []
    )


@each_row("text", ["", "im", "a  b   im  c", "dont\n\n\nim", "w/o im w/ ive", "x im"])
def test_every_corrected_position_maps_to_the_original_text(text):
    reading = correct_spelling(text)
    for position in range(len(reading.text) + 1):
        assert 0 <= reading.to_source_start(position) <= len(text)
        assert 0 <= reading.to_source_end(position) <= len(text)
    assert (reading.to_source_start(0), reading.to_source_end(len(reading.text))) == (0, len(text))
