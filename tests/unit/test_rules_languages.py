"""Statements about oneself in other languages."""

from listening import texts, triples
from tables import each_row

STATEMENTS = {
    "Mein Bruder Jonas arbeitet bei Siemens.": {
        ("User", "has_sibling", "Jonas"),
        ("Jonas", "works_at", "Siemens"),
    },
    "Seit Mai arbeite ich bei Lufthansa.": {("User", "works_at", "Lufthansa")},
    "Ich vertrage keine Milch.": {("User", "avoids", "Milch")},
    "Ich bin keine Veganerin mehr": {("User", "-diet", "Veganerin")},
    "Je déteste les huîtres.": {("User", "dislikes", "huîtres")},
    "Ma mère a le diabète.": {("User's mother", "has_condition", "diabète")},
    "Soy fontanero y toco la guitarra.": {
        ("User", "works_as", "fontanero"),
        ("User", "plays", "guitarra"),
    },
    "Mi hermana vive en Cádiz.": {("User's sister", "lives_in", "Cádiz")},
    "No puedo comer gluten.": {("User", "avoids", "gluten")},
    "Ho due sorelle, Ada e Pia.": {
        ("User", "has_sibling", "due sorelle"),
        ("User", "has_sibling", "Ada"),
        ("User", "has_sibling", "Pia"),
    },
    "Minha avó é professora.": {("User's grandmother", "works_as", "professora")},
    "Ik heet Sanne en ik woon in Utrecht.": {
        ("User", "name", "Sanne"),
        ("User", "lives_in", "Utrecht"),
    },
    "Меня зовут Олег, я живу в Твери.": {("User", "name", "Олег"), ("User", "lives_in", "Твери")},
    "私の名前は美咲です。京都に住んでいます。": {
        ("User", "name", "美咲"),
        ("User", "lives_in", "京都"),
    },
    "我叫王芳，住在广州。": {("User", "name", "王芳"), ("User", "lives_in", "广州")},
    "제 이름은 민준입니다.": {("User", "name", "민준")},
    "Mieszkam w Gdyni i pracuję jako kucharz": {
        ("User", "lives_in", "Gdyni"),
        ("User", "works_as", "kucharz"),
    },
    "Hola. Soy Nuria. Vivo en Soria con mi marido Pau.": {
        ("User", "name", "Nuria"),
        ("User", "lives_in", "Soria"),
        ("User", "has_partner", "Pau"),
    },
    "Antes vivía en Lugo, ahora vivo en Vigo": {
        ("User", "-lives_in", "Lugo"),
        ("User", "lives_in", "Vigo"),
    },
    "Früher habe ich in Kiel gewohnt": {("User", "-lives_in", "Kiel")},
    "Je prends de la metformine": {("User", "takes", "metformine")},
    "Ich nehme seit März Ramipril": {("User", "takes", "Ramipril")},
    "Adoro nuotare e odio il freddo": {
        ("User", "likes", "nuotare"),
        ("User", "dislikes", "freddo"),
    },
    "Meu orçamento é de 900 reais": {("User", "budget", "900 reais")},
    "Mia cugina ha due figli": {("User's cousin", "has_child", "due figli")},
    "Jag heter Linnea och bor i Lund.": {("User", "name", "Linnea"), ("User", "lives_in", "Lund")},
}


@each_row(("said", "wanted"), STATEMENTS.items(), ids=STATEMENTS.keys())
def test_statements_in_other_languages_are_extracted(said, wanted):
    assert triples(said) == wanted


@each_row(
    "said",
    [
        "Ich bin müde.",
        "Kannst du mir helfen?",
        "Je suis en retard.",
        "Merci, c'est gentil",
        "Estoy cansado.",
        "Ho un problema con il mio computer.",
        "Eu tenho uma pergunta.",
        "你好，请问几点了？",
        "ありがとう",
        "Спасибо!",
        "Je ne comprends pas cette erreur.",
        "Estoy en Madrid hoy.",
        "Mi piace la tua risposta.",
        "Quiero saber cómo hacerlo.",
        "Je voudrais savoir comment faire.",
        "Ich möchte wissen, wie das geht.",
    ],
)
def test_small_talk_in_other_languages_gives_no_claims(said):
    assert texts(said) == []
