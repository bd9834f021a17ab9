"""Idioms with a plain meaning, and phrases that only look like them."""

from listening import claims, texts
from tables import each_row

PHRASES = {
    "I can't get enough of pickled herring": ["User likes pickled herring"],
    "Karaoke isn't my thing": ["User dislikes Karaoke"],
    "Chewing gum drives me up the wall": ["User dislikes Chewing gum"],
    "We've never got into cricket": ["User dislikes cricket"],
    "Cilantro doesn't agree with me": ["User avoids Cilantro"],
    "It's histamine that sets me off": ["User avoids histamine"],
    "Wasp stings put me in hospital": ["User is allergic to Wasp stings"],
    "It says Wilhelmina on my passport": ["User's name is Wilhelmina"],
    "I was laid off from Nokia in May": ["User no longer works at Nokia"],
    "Farewell sous-chef, hello head chef": [
        "User no longer works as a sous-chef",
        "User works as a head chef",
    ],
    "I'm still job hunting": ["User is looking for a job"],
    "I earn my living as a piano tuner": ["User works as a piano tuner"],
    "I carve spoons for a living": ["User carves spoons for a living"],
    "My uncle fixes clocks for a living": ["User's uncle fixes clocks for a living"],
    "We call Trondheim home": ["User lives in Trondheim"],
    "These days we're in Ghent": ["User lives in Ghent"],
    "We ended up in Porto": ["User lives in Porto"],
    "What I'd really love is to learn the oboe": ["User wants to learn the oboe"],
    "I've always wanted to see Iceland": ["User wants to see Iceland"],
    "My cardiologist switched me to bisoprolol": ["User takes bisoprolol"],
    "The dermatologist prescribed doxycycline": ["User takes doxycycline"],
    "Dutch isn't my first language, Frisian is": ["User's native language is Frisian"],
    "My phone's a Fairphone and my laptop runs Debian": [
        "User has a Fairphone",
        "User uses Debian",
    ],
    "It was in 2009 that I volunteered on a turtle farm": [
        "User volunteered on a turtle farm in 2009"
    ],
}


@each_row(("said", "wanted"), PHRASES.items(), ids=PHRASES.keys())
def test_an_idiom_is_read_as_its_plain_meaning(said, wanted):
    assert texts(said) == wanted


@each_row(
    "said",
    [
        "It makes me sick",
        "That isn't my thing but thanks",
        "I can't bear to think about it",
        "Is dairy off limits for me?",
        "It says error on my screen",
        "They put me on hold",
        "What do you do for a living?",
        "I live for the weekend",
        "I can't be doing with this today",
        "People like that drive me crazy, don't they?",
        "What is it that drives me mad?",
        "If I could, I'd call Paris home",
        "Goodbye and thanks",
        "My boss moved me to the back",
        "Paris is home to the Louvre",
        "Home is where the heart is",
        "They moved me to another desk",
        "What I need is to fix this error",
        "I'm dying to know the answer",
        "We named the variable Foo",
    ],
)
def test_an_idiom_lookalike_gives_no_claims(said):
    assert texts(said) == []


def test_object_and_span_are_those_of_the_original_text():
    said = "Well, loud cafés really do my head in, sorry."
    [claim] = claims(said)
    assert (claim.object, said[slice(*claim.span)]) == (
        "loud cafés",
        "loud cafés really do my head in",
    )
