"""Name similarity: similar names score 0.8 or more, different ones less."""

import string

from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.text.similarity import value_similarity

SIMILAR = [
    ("photography", "photos"),
    ("photography", "photographs"),
    ("photos", "photographs"),
    ("photo", "photography"),
    ("Picasso", "Pablo Picasso"),
    ("Picasso, Pablo", "Pablo Picasso"),
    ("Picasso", "Piccaso"),
    ("PICASSO", "picasso"),
    ("colour", "color"),
    ("sculpture", "sculptures"),
    ("the sculpture", "sculpture"),
    ("wheelchair", "wheel chair"),
    ("Van Gogh", "Vincent van Gogh"),
    ("oil painting", "paintings in oil"),
    ("vegetarian", "vegetarians"),
    ("hall 12", "Hall 12"),
    ("impressionism", "impressionist"),
    ("Egypt", "Egyptian art"),
    ("an hour", "one hour"),
]
DISTINCT = [
    ("Monet", "Picasso"),
    ("Monet", "Manet"),
    ("impressionism", "expressionism"),
    ("realism", "surrealism"),
    ("hall 1", "hall 2"),
    ("1 hour", "2 hours"),
    ("one hour", "two hours"),
    ("car", "carpet"),
    ("ink", "pink"),
    ("oil", "boiler"),
    ("vegetarian", "not vegetarian"),
    ("vegetarian", "non-vegetarian"),
    ("peanuts", "tree nuts"),
    ("coffee", "tea"),
    ("deaf", "death"),
    ("Rodin", "Robin"),
    ("modern art", "contemporary art"),
    ("", "x"),
    ("!", "?"),
    ("with milk", "without milk"),
    ("a dog", "another dog"),
    ("marble", "bronze"),
    ("east wing", "west wing"),
]


@each_row("pair", SIMILAR)
def test_similar_names_score_above_the_threshold(pair):
    assert value_similarity(*pair) >= 0.8


@each_row("pair", DISTINCT)
def test_different_names_score_below_the_threshold(pair):
    assert value_similarity(*pair) < 0.8


words = st.text(string.ascii_letters + string.digits + " -'", max_size=20)


@given(words, words)
def test_similarity_is_symmetric_and_between_zero_and_one(one, other):
    assert 0.0 <= value_similarity(one, other) == value_similarity(other, one) <= 1.0


@given(words)
def test_every_name_is_similar_to_itself(one):
    assert value_similarity(one, one) == 1.0
