"""How much two values look like names of the same thing: near ones from 0.8 on, far ones below."""

import string

from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.text.similarity import value_similarity

NEAR = [
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
FAR = [
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


@each_row("pair", NEAR)
def test_near_values_are_alike(pair):
    assert value_similarity(*pair) >= 0.8


@each_row("pair", FAR)
def test_far_values_are_not(pair):
    assert value_similarity(*pair) < 0.8


words = st.text(string.ascii_letters + string.digits + " -'", max_size=20)


@given(words, words)
def test_it_is_a_share_and_the_same_from_both_sides(one, other):
    assert 0.0 <= value_similarity(one, other) == value_similarity(other, one) <= 1.0


@given(words)
def test_everything_is_like_itself(one):
    assert value_similarity(one, one) == 1.0
