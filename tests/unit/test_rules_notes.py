"""Notes about oneself: key-value pairs, bullet points, lists and fragments without a subject."""

from listening import claims, texts, triples
from tables import each_row

NOTES = {
    "Likes: tea, old maps, and also long walks. Dislikes: queues": {
        ("likes", "tea"),
        ("likes", "old maps"),
        ("likes", "long walks"),
        ("dislikes", "queues"),
    },
    "- Name: Farid\n- City: Lyon\n- Job: baker\n- Kids: 3": {
        ("name", "Farid"),
        ("lives_in", "Lyon"),
        ("works_as", "baker"),
        ("has_child", "3"),
    },
    "my allergies: walnuts, latex": {("allergic_to", "walnuts"), ("allergic_to", "latex")},
    "Languages: Czech (native), Danish (basic)": {("speaks", "Czech"), ("speaks", "Danish")},
    "Pets: a parrot (Coco), two cats": {("has_pet", "Coco"), ("has_pet", "two cats")},
    "Family: wife Lotte, sons Bram and Teun": {
        ("has_partner", "Lotte"),
        ("has_child", "Bram"),
        ("has_child", "Teun"),
    },
    "Name: Jun | Age: 29 | From: Osaka": {("name", "Jun"), ("age", "29"), ("comes_from", "Osaka")},
    "**Diet:** pescatarian\n**Editor:** Helix": {("diet", "pescatarian"), ("uses", "Helix")},
    "Work: data analyst @ Ikea. Home: Malmö.": {("works_at", "Ikea"), ("lives_in", "Malmö")},
    "Dietary: no pork, no shellfish": {("avoids", "pork"), ("avoids", "shellfish")},
    "Things I love:\n* rain\n* brass bands": {("likes", "rain"), ("likes", "brass bands")},
    "Countries I've visited: Laos, Chile": {("visited", "Laos"), ("visited", "Chile")},
    "Goals for 2027:\n1. run a marathon\n2. learn Polish": {
        ("goal", "run a marathon"),
        ("goal", "learn Polish"),
    },
    "- vegan\n- two kids\n- live in Oslo": {
        ("diet", "vegan"),
        ("has_child", "two kids"),
        ("lives_in", "Oslo"),
    },
    "divorced, two cats, live in Turin, hate mornings": {
        ("relationship_status", "divorced"),
        ("has_pet", "two cats"),
        ("lives_in", "Turin"),
        ("dislikes", "mornings"),
    },
    "Facts about me: 52, plumber, allergic to cats": {
        ("age", "52"),
        ("works_as", "plumber"),
        ("allergic_to", "cats"),
    },
}


@each_row(("said", "wanted"), NOTES.items(), ids=NOTES.keys())
def test_notes_are_extracted(said, wanted):
    assert {(predicate, value) for _, predicate, value in triples(said)} == wanted


@each_row(
    "said",
    [
        "Agenda:\n- standup\n- call the plumber\n- dentist at 3",
        "Shopping list: milk, eggs, bread",
        "todo:\n- buy milk\n- water the plants",
        "Pros: cheap, fast. Cons: ugly.",
        "name: billing-api\nport: 8080\nimage: redis",
        "Subject: Invoice\nFrom: Acme\nTo: Bob",
        "Allergies: none\nPets: no",
        "Write a profile for a character. Name: Lena, Job: spy, City: Minsk",
        "Format: JSON",
    ],
)
def test_notes_about_other_things_give_no_claims(said):
    assert texts(said) == []


def test_a_note_span_covers_its_own_words():
    said = "Name: Farid\nPets: a parrot (Coco)"
    for claim in claims(said):
        start, end = claim.span
        assert claim.object in said[start:end]
