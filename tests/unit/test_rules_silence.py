"""Text from which the rule extractor must not extract anything."""

from listening import hear, texts
from tables import each_row

NO_FACTS = [
    "hello",
    "What's the capital of France?",
    "How do I reverse a list in Python?",
    "can you recommend a restaurant near me in Lisbon?",
    "Do you like pizza?",
    "I have a question",
    "I need help with my code",
    "I want to know how to sort a list",
    "I like your answer",
    "I love it",
    "I love the yellow leaves in that picture",
    "I'm tired",
    "I'm not sure",
    "I'm at the airport",
    "I'm looking for a good book",
    "oh great, I just LOVE mondays",
    "Sure, because I love being ignored",
    "nothing beats waiting in line for 3 hours",
    "I love meetings so much /s",
    "Call me Ishmael, just kidding",
    "if I lived in Paris I would eat croissants every day",
    "I wish I lived in Hawaii",
    "What if I worked at Google?",
    "Imagine I'm a doctor.",
    "Let's say I have 3 cats",
    "I would never live in Texas",
    "I'd move to Italy if I could",
    "I should eat less sugar",
    "I almost moved to Spain",
    "I was going to move to Spain but didn't",
    "I didn't go to Paris",
    "my boss said that he hates Java",
    "My mom always says I'm stubborn",
    "I heard that Bob works at Google",
    'He said "I love Java"',
    "Translate to French: I live in Paris",
    'Fix this sentence: "I has two cat"',
    "Write a story where I am a pirate",
    "Draft a bio: I'm a chef in Lyon",
    "> I live in Paris",
    '```python\nname = "I live in Paris"\n```',
    "SELECT * FROM users WHERE name = 'Bob'",
    "Error: I am unable to connect to the database",
    "Please call me back",
    "answer this question in one sentence",
    "You live in the cloud",
    "She is a doctor",
    "Einstein was born in Ulm",
    "Google is a search engine",
    "Everyone loves pizza",
    "When I was a kid I lived in Peru",
]


@each_row("said", NO_FACTS)
def test_text_without_facts_gives_no_claims(said):
    assert texts(said) == []


def test_assistant_turns_give_no_claims_about_the_user():
    assert hear(("assistant", "My name is Claude and I live in a server. I love tea.")).claims == ()


def test_tool_and_document_turns_give_no_claims_about_the_user():
    assert hear(("tool", "I live in Paris"), ("system", "My name is Bob")).claims == ()


def test_a_long_list_makes_a_bounded_number_of_claims():
    said = (
        "I like "
        + ", ".join(f"thing{number}" for number in range(100))
        + ". "
        + "I love tea. I hate rain. " * 200
    )
    assert 0 < len(hear(said).claims) <= 12


def test_a_chatty_turn_makes_a_few_claims_at_most():
    said = (
        "Wow, that sounds amazing! I'm so happy for you. It must have been such a wonderful "
        "experience, and I can only "
        "imagine how proud you are. I've been swamped with the kids and work, but yesterday we "
        "went to the beach and "
        "it was so relaxing. Thanks for always being there for me. What are your plans for the "
        "weekend?"
    )
    assert len(texts(said, name="Melanie")) <= 2
