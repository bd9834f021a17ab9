"""Search by words and by dates in five languages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.model.scope import Scope
from told.testing import HashingEmbedder, ManualClock, seeded_mint

U = {"user_id": "u"}

# Pairs of a memory and a question about it.
SAID: dict[str, list[tuple[str, str]]] = {
    "en": [
        ("My sister Clara works as a vet in Dublin.", "Where does my sister work?"),
        ("I am allergic to peanuts.", "What am I allergic to?"),
        ("We adopted a grey cat called Pepper.", "What is the name of our cat?"),
        ("My car broke down on the motorway.", "What happened to my car?"),
        ("I play the violin in an orchestra.", "Which orchestra instrument do I play?"),
        ("The rent of my flat is 900 euros.", "How much is the rent?"),
        ("I am reading a book about whales.", "Which book am I reading?"),
        ("My dentist is called Doctor Hill.", "Who is my dentist?"),
        ("Grandpa planted an apple tree in the garden.", "What did Grandpa plant?"),
    ],
    "es": [
        ("Mi hermana Clara trabaja de veterinaria en Sevilla.", "¿Dónde trabaja mi hermana?"),
        ("Soy alérgico a los cacahuetes.", "¿A qué soy alérgico?"),
        ("Adoptamos un gato gris que se llama Pimienta.", "¿Cómo se llama el gato?"),
        ("Mi coche se averió en la autopista.", "¿Qué le pasó a mi coche?"),
        ("Toco el violín en una orquesta.", "¿Qué toco en la orquesta?"),
        ("El alquiler de mi piso es de 900 euros.", "¿Cuánto es el alquiler?"),
        ("Estoy leyendo un libro sobre ballenas.", "¿Qué libro estoy leyendo?"),
        ("Mi dentista se llama doctora Colina.", "¿Quién es mi dentista?"),
        ("El abuelo plantó un manzano en el jardín.", "¿Qué plantó el abuelo?"),
    ],
    "de": [
        ("Meine Schwester Clara arbeitet als Tierärztin in Köln.", "Wo arbeitet meine Schwester?"),
        ("Ich bin allergisch gegen Erdnüsse.", "Wogegen bin ich allergisch?"),
        ("Wir haben eine graue Katze namens Pfeffer.", "Welche Katze haben wir?"),
        ("Mein Auto ist auf der Autobahn liegen geblieben.", "Was ist mit meinem Auto passiert?"),
        ("Ich spiele Geige in einem Orchester.", "Was spiele ich im Orchester?"),
        ("Die Miete meiner Wohnung beträgt 900 Euro.", "Wie hoch ist die Miete?"),
        ("Ich lese gerade ein Buch über Wale.", "Welches Buch lese ich?"),
        ("Mein Zahnarzt heißt Doktor Hügel.", "Wer ist mein Zahnarzt?"),
        ("Opa hat einen Apfelbaum im Garten gepflanzt.", "Was hat Opa gepflanzt?"),
    ],
    "zh": [
        ("我姐姐在大连当兽医。", "我姐姐在哪里工作？"),
        ("我对花生过敏。", "我对什么过敏？"),
        ("我们养了一只灰色的猫，名叫胡椒。", "我们的猫叫什么？"),
        ("我的汽车在高速公路上坏了。", "我的汽车怎么了？"),
        ("我在乐团拉小提琴。", "我在乐团做什么？"),
        ("公寓的房租是九百欧元。", "房租是多少？"),
        ("我正在读一本关于鲸鱼的书。", "我在读什么关于鲸鱼的东西？"),
        ("我的牙医姓李。", "我的牙医是谁？"),
        ("爷爷在花园里种了一棵苹果树。", "爷爷种了什么？"),
    ],
    "ja": [
        ("姉は札幌で獣医をしています。", "姉はどこで働いていますか？"),
        ("私はピーナッツにアレルギーがあります。", "何のアレルギーがありますか？"),
        ("灰色の猫を飼っていて、名前はコショウです。", "猫の名前は何ですか？"),
        ("高速道路で車が故障しました。", "高速道路で何がありましたか？"),
        ("オーケストラでバイオリンを弾いています。", "オーケストラで何を弾いていますか？"),
        ("アパートの家賃は九万円です。", "家賃はいくらですか？"),
        ("クジラについての本を読んでいます。", "どんな本を読んでいますか？"),
        ("歯医者は鈴木先生です。", "歯医者は誰ですか？"),
        ("祖父が庭にリンゴの木を植えました。", "祖父は何を植えましたか？"),
    ],
}
CASES = [(tongue, number) for tongue, rows in SAID.items() for number in range(len(rows))]

CACHE = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "told"
"""Model folder, resolved before a fixture changes the home directory."""


@pytest.fixture(scope="module")
def by_words() -> Iterator[dict[str, Memory]]:
    yield from open_memories("none")


@pytest.fixture(scope="module")
def by_claims() -> Iterator[dict[str, Memory]]:
    yield from open_memories("none", "local")


@pytest.fixture(scope="module")
def by_hashes() -> Iterator[dict[str, Memory]]:
    yield from open_memories(HashingEmbedder())


@pytest.fixture(scope="module")
def by_model() -> Iterator[dict[str, Memory]]:
    yield from open_memories(open_local_embedder())


def open_local_embedder() -> Any:
    """Open the installed English model, or skip."""
    from told.providers.local import open_embedder, registry

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(CACHE.parent))
        if registry.path("e5-small") is None:
            pytest.skip("e5-small is not installed: run `told models install`")
        return open_embedder("e5-small")


def open_memories(embedder: Any, extract: str = "verbatim") -> Iterator[dict[str, Memory]]:
    """Open one memory per language and one with all languages."""
    stores = {}
    for tongue in (*SAID, "all"):
        memory = Memory(
            "ram://", embedder=embedder, mint=seeded_mint(tongue, ManualClock()), extract=extract
        )
        memory.add(
            [
                text
                for language in (SAID if tongue == "all" else (tongue,))
                for text, _ in SAID[language]
            ],
            **U,
        )
        stores[tongue] = memory
    yield stores
    for memory in stores.values():
        memory.close()


def first_result(memory: Memory, query: str) -> str:
    return str(memory.search(query, **U)["results"][0]["memory"])


@pytest.mark.parametrize(("tongue", "number"), CASES)
def test_question_ranks_its_memory_first_by_words(by_words, tongue, number):
    text, query = SAID[tongue][number]
    assert first_result(by_words[tongue], query) == text


@pytest.mark.parametrize(("tongue", "number"), CASES)
def test_question_ranks_its_memory_first_among_all_languages(by_words, tongue, number):
    text, query = SAID[tongue][number]
    assert first_result(by_words["all"], query) == text


@pytest.mark.parametrize("tongue", SAID)
def test_question_finds_claims_extracted_from_the_memory(by_claims, tongue):
    """Accept the memory itself or a claim extracted from its turn."""
    store = by_claims[tongue].engine.store
    right = []
    for text, query in SAID[tongue]:
        [best, *_] = by_claims[tongue].search(query, **U)["results"]
        turns = [
            fact.evidence
            for fact in store.find_versions("default", scope=Scope(user_id="u"))
            if fact.text == text
        ]
        fact = store.get_fact("default", best["id"])
        right.append(best["memory"] == text or fact.evidence in turns)
    assert sum(right) >= len(right) - 1, right


@pytest.mark.parametrize("tongue", SAID)
def test_hybrid_search_finds_nearly_all_memories(by_hashes, tongue):
    right = [first_result(by_hashes[tongue], query) == text for text, query in SAID[tongue]]
    assert sum(right) >= len(right) - 1


@pytest.mark.parametrize(
    ("tongue", "least"), [("en", 9), ("es", 8), ("de", 8), ("zh", 7), ("ja", 7)]
)
def test_english_model_does_not_degrade_word_search(by_model, tongue, least):
    right = [first_result(by_model[tongue], query) == text for text, query in SAID[tongue]]
    assert sum(right) >= least, right


# Dates

# The same five timestamps in each language; the texts do not mention the time.
MOMENTS = {
    "yesterday": "2024-05-14T12:00:00Z",
    "last week": "2024-05-08T12:00:00Z",
    "in April": "2024-04-10T12:00:00Z",
    "last year": "2023-07-03T12:00:00Z",
    "day": "2024-02-03T12:00:00Z",
}
NOW = "2024-05-15T18:00:00Z"  # a Wednesday
TIMES = {
    "en": (
        "We ate at {}.",
        ("Rome", "Paris", "Oslo", "Cairo", "Lima"),
        {
            "yesterday": "Where did we eat yesterday?",
            "last week": "Where did we eat last week?",
            "in April": "Where did we eat in April?",
            "day": "Where did we eat on 3 February 2024?",
        },
    ),
    "es": (
        "Comimos en {}.",
        ("Roma", "París", "Oslo", "Cairo", "Lima"),
        {
            "yesterday": "¿Dónde comimos ayer?",
            "last week": "¿Dónde comimos la semana pasada?",
            "in April": "¿Dónde comimos en abril?",
            "day": "¿Dónde comimos el 3 de febrero de 2024?",
        },
    ),
    "de": (
        "Wir haben in {} gegessen.",
        ("Rom", "Paris", "Oslo", "Kairo", "Lima"),
        {
            "yesterday": "Wo haben wir gestern gegessen?",
            "last week": "Wo haben wir letzte Woche gegessen?",
            "in April": "Wo haben wir im April gegessen?",
            "day": "Wo haben wir am 3. Februar 2024 gegessen?",
        },
    ),
    "zh": (
        "我们在{}吃饭。",
        ("罗马", "巴黎", "奥斯陆", "开罗", "利马"),
        {
            "yesterday": "昨天我们在哪里吃饭？",
            "last week": "上周我们在哪里吃饭？",
            "in April": "四月我们在哪里吃饭？",
            "day": "2024年2月3日我们在哪里吃饭？",
        },
    ),
    "ja": (
        "{}で食事をしました。",
        ("ローマ", "パリ", "オスロ", "カイロ", "リマ"),
        {
            "yesterday": "昨日はどこで食事をしましたか？",
            "last week": "先週はどこで食事をしましたか？",
            "in April": "4月はどこで食事をしましたか？",
            "day": "2024年2月3日はどこで食事をしましたか？",
        },
    ),
}


@pytest.mark.parametrize(
    ("tongue", "moment"), [(tongue, moment) for tongue in TIMES for moment in TIMES[tongue][2]]
)
def test_time_in_question_selects_memory_of_that_time(tongue, moment):
    text, places, questions = TIMES[tongue]
    with Memory("ram://", embedder="none", mint=seeded_mint(1, ManualClock())) as memory:
        for place, at in zip(places, MOMENTS.values(), strict=True):
            memory.add(text.format(place), **U, timestamp=at)
        wanted = text.format(places[list(MOMENTS).index(moment)])
        found = memory.search(questions[moment], **U, reference_date=NOW, explain=True)["results"]
        assert found[0]["memory"] == wanted
        assert found[0]["score_details"]["time"] == 2.5


@pytest.mark.parametrize("tongue", TIMES)
def test_reference_date_changes_selected_memory(tongue):
    text, places, questions = TIMES[tongue]
    with Memory("ram://", embedder="none", mint=seeded_mint(1, ManualClock())) as memory:
        for place, at in zip(places, MOMENTS.values(), strict=True):
            memory.add(text.format(place), **U, timestamp=at)
        for moment, reference in (
            ("yesterday", "2024-05-15T08:00:00Z"),
            ("day", "2024-02-04T08:00:00Z"),
        ):
            [best, *_] = memory.search(questions["yesterday"], **U, reference_date=reference)[
                "results"
            ]
            assert best["memory"] == text.format(places[list(MOMENTS).index(moment)])
