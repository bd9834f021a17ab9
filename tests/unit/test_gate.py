"""The ingest gate: which turns are kept, skipped or refused, and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.errors import InvalidInput
from told.ingest.gate import (
    ECHO_WARNING,
    SECRETS_KEY,
    GateDecision,
    GateResult,
    apply_gate,
    decide_turn,
    screen_text,
)
from told.ingest.messages import InputTurn, parse_messages
from told.model.entry import Evidence
from told.settings import Settings
from told.text.echo import CONTEXT_NOTE, EchoFilter, strip_context_blocks
from told.text.noise import is_filler, is_noise, is_prompt, is_short

KEY = "AKIA" + "IOSFODNN7ABCDEFG"
CONTEXT = f"<memory c8da>\n{CONTEXT_NOTE}\n2024\n3 Mar Ann: I like tea\n</memory c8da>"


def decide(
    text: str,
    role: str = "user",
    meta: dict[str, Any] | None = None,
    echoes: EchoFilter | None = None,
    **knobs: Any,
) -> GateDecision:
    turn = InputTurn(Evidence(text, role), meta or {})
    return decide_turn(turn, "default", Settings(**knobs), echoes or EchoFilter())


MEANINGFUL = [
    "the who",
    "Once only",
    "only for this test",
    "🫖",
    "🍕👍",
    "Call Bob",
    "likes tea",
    "tea",
    "x",
    "42",
    "no",
    "yes",
    "vegan",
    "I'm Alice",
    "I moved to Berlin",
    "Paris",
    "green tea",
    "茶",
    "東京に住んでいます",
    "我喜欢茶",
    "차를 좋아해요",
    "люблю чай",
    "Ich mag Tee",
    "me gusta el té",
    "good restaurants in Rome",
    "The Who are my favourite band",
    "I saw The Who",
    "I do IT",
    "I'm not well",
    "not good",
    "hello kitty is my cat",
    "Thanks to Bob I got the job",
    "ok computer",
    "my sister says hi",
    "ping pong is fun",
    "I play ping-pong",
    "Error: I was wrong about her",
    "WARNING: allergic to nuts",
    "INFO: the meeting moved to 5",
    "null pointers scare me",
    "The connection with my sister is good",
    "I lost my connection to the church",
    "My status: single",
    "status: engaged",
    "I got a TypeError, what does it mean?\nTypeError: x is not a function",
    "Done in two days",
    "GET well soon, Ann",
    "I finished the marathon in 4:12:09",
    "2024-05-01 I married Ben",
    "at home with the cats",
    "[ok] bring milk",
    '{"name": "Ann", "city": "Oslo"}',
    '{"status": "married"}',
    '{"name": "Ann"}',
    '{"result": 42}',
    '{"id": 7}',
    '["tea", "coffee"]',
    '{"type": "ping", "note": "I like tea"}',
    "You are a great assistant, I owe you one",
    "You are the best agent my company ever had",
    "You are absolutely right about AI",
    "I am an AI engineer",
    "She is an assistant",
    "My assistant is called Claude",
    "I wrote an AGENTS.md for my repo yesterday",
    "the system prompt I use is short",
    "File a complaint about the invoice",
    "Exit through the gift shop",
    "well-being matters",
    (
        "Thank you for telling me that your mother lives in Oslo and that you visit her every summer "  # noqa: E501
        "with the dog"
    ),
]

SKIPPED = {
    "too short": ["", "  ", "{}", "[]", "...", "!!!", "?", "—"],
    "nothing but filler words": [
        "👍",
        "❤️❤️ 🙏",
        "hello",
        "Hello!",
        "hi there",
        "hey",
        "ok thanks",
        "OK, thanks!",
        "thank you so much",
        "Thanks a lot 😊",
        "good morning",
        "Good morning everyone!",
        "how are you?",
        "what is it?",
        "and then?",
        "it is what it is",
        "yes thanks",
        "no thanks",
        "sounds good",
        "see you, bye",
        "haha",
        "lol",
        "hmm",
        "k",
        "Why?",
        "great, thanks",
        "Hallo",
        "Guten Morgen",
        "vielen Dank",
        "danke schön",
        "hola",
        "¡Hola!",
        "buenos días",
        "muchas gracias",
        "hola, ¿qué tal?",
        "merci beaucoup",
        "bonjour",
        "你好",
        "谢谢！",
        "こんにちは",
        "ありがとうございます",
        "안녕하세요",
        "привет",
        "HELLO",
        "I'm fine",
        "that's it, thanks",
    ],
    "infrastructure noise": [
        "heartbeat",
        "HEARTBEAT_OK",
        "ping",
        "pong",
        "Heartbeat: ok",
        "health check passed",
        "keep-alive",
        "status: ok",
        "null",
        "(no output)",
        "[object Object]",
        "HTTP 200",
        "HTTP/1.1 200 OK",
        "HTTP 404 Not Found",
        "GET /health HTTP/1.1",
        'GET /api/v1/users HTTP/1.1" 200 512',
        '127.0.0.1 - - [10/Oct/2024:13:55:36 +0000] "GET / HTTP/1.1" 200 2326',
        "2024-05-01 10:00:00,123 INFO server started",
        "2024-05-01T10:00:00Z [worker] ERROR failed",
        "[INFO] ready",
        "INFO:root:hello",
        "DEBUG 2024-05-01 10:00:00 x",
        "May  1 10:00:00 host sshd[123]: Accepted password for bob",
        "2024-05-01 10:00:00 INFO a\n2024-05-01 10:00:01 WARN b\n\n[ERROR] c",
        "connection refused",
        "Connection timed out.",
        "Error: connect ECONNREFUSED 127.0.0.1:11434",
        "ConnectionError: connection refused",
        "503 Service Unavailable",
        "Request timed out after 30s",
        "Failed to fetch",
        "rate limit exceeded",
        "fetch failed: ETIMEDOUT",
        "Internal Server Error",
        "[Errno 111] Connection refused",
        "TypeError: x is not a function",
        "KeyError: 'a'",
        "java.lang.NullPointerException",
        "requests.exceptions.ReadTimeoutError: y",
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f(x)\n    '
            "~^^^\nValueError: bad"
        ),
        "TypeError: x is undefined\n    at foo (/a/b.js:1:2)\n    at async bar (file:///c.mjs:3:4)",
        (
            "Exception: boom\n\tat com.x.Y.z(Y.java:12)\n\t... 12 more\nCaused by: io.IOException: "
            "no\n\tat a.b(C.java:1)"
        ),
        "Command completed successfully.",
        "Process exited with code 0",
        "exit code: 1",
        "Tool ran without output",
        "File created successfully at: /tmp/x.py",
        "[Request interrupted by user]",
        "Done in 1.25s.",
        "[=====>    ] 45%",
        '{"type": "ping"}',
        '{"status": "ok", "ts": 1714557600}',
        '{"ok": true, "uptime": 12.5, "version": "1.2"}',
        "npm WARN deprecated foo@1.0.0",
    ],
    "system prompt": [
        "You are a helpful assistant.",
        "You are Claude, an AI assistant made by Anthropic.",
        "You are an expert Python coding agent.",
        "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06",
        "Act as a travel bot.",
        "# Role\nYou are a friendly support chatbot for a bank. Never speak of prices.",
        "Du bist ein hilfreicher Assistent.",
        "# AGENTS.md\n\n## Setup\nRun make.",
        "# CLAUDE.md\n\nThis file guides Claude Code when working here. I use tabs.",
        "Contents of /repo/CLAUDE.md:\n\nUse uv.",
        "<system-reminder>\nThe date is…\n</system-reminder>",
        "[system] be brief",
        "System prompt: be brief",
        "Guide\n\nThis file provides guidance to Claude Code (claude.ai/code).",
    ],
}


@each_row("text", MEANINGFUL)
def test_a_short_but_meaningful_text_is_kept(text: str) -> None:
    verdict = decide(text)
    assert (verdict.outcome, verdict.reason) == ("keep", "")
    assert verdict.own_text.text == verdict.turn.evidence.content
    assert verdict.turn.evidence.content == text


@each_row(
    ("reason", "text"), [(reason, text) for reason, texts in SKIPPED.items() for text in texts]
)
def test_a_text_without_content_is_skipped_but_kept_as_evidence(reason: str, text: str) -> None:
    verdict = decide(text)
    assert (verdict.outcome, verdict.reason) == ("skip", reason)
    assert verdict.turn.evidence.content == text, "evidence is verbatim"


@pytest.mark.parametrize(
    "reason", ["too short", "nothing but filler words", "infrastructure noise"]
)
def test_a_disabled_gate_keeps_noise(reason: str) -> None:
    assert {decide(text, gate=False).outcome for text in SKIPPED[reason]} == {"keep"}


def test_a_disabled_gate_still_stops_prompts_echoes_and_secrets() -> None:
    assert decide("You are a helpful assistant.", gate=False).reason == "system prompt"
    assert decide(CONTEXT, gate=False).reason == "echo of recalled memories"
    assert KEY not in decide(KEY, gate=False).turn.evidence.content


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_messages_are_skipped(role: str) -> None:
    verdict = decide("The user lives in Berlin", role)
    assert (verdict.outcome, verdict.reason) == ("skip", "system message")


@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_other_roles_are_judged_by_their_text(role: str) -> None:
    assert decide("The train leaves at nine", role).outcome == "keep"
    assert decide("ok", role).outcome == "skip"


def test_a_prompt_drafted_by_an_assistant_is_kept() -> None:
    assert [
        decide("You are a helpful assistant.", role).outcome
        for role in ("user", "tool", "assistant")
    ] == [
        "skip",
        "skip",
        "keep",
    ]


@pytest.mark.parametrize(
    ("text", "least", "outcome"),
    [
        ("tea", 3, "keep"),
        ("tea", 4, "skip"),
        ("茶", 3, "keep"),
        ("t e-a!", 3, "keep"),
        ("", 0, "keep"),
    ],
)
def test_the_minimum_length_is_configurable(text: str, least: int, outcome: str) -> None:
    assert decide(text, gate_least=least).outcome == outcome


def test_a_text_over_the_limit_is_kept_only_as_evidence() -> None:
    assert decide("I like tea", gate_most=10).outcome == "keep"
    assert decide("I like teas", gate_most=10).reason == "too long"


# Secrets


def test_a_secret_is_redacted_by_default() -> None:
    verdict = decide(f"my key is {KEY}, keep it")
    assert verdict.outcome == "keep"
    assert verdict.turn.evidence.content == "my key is [redacted: AWS access key], keep it"
    assert verdict.warnings == ("Secrets were redacted: AWS access key.",)


def test_a_rejected_secret_is_not_part_of_the_verdict() -> None:
    verdict = decide(f"my key is {KEY}", secrets="reject")
    assert (verdict.outcome, verdict.reason) == ("refuse", "secret: AWS access key")
    assert KEY not in repr(verdict)


def test_a_kept_secret_is_marked_with_a_warning_that_it_is_not_encrypted() -> None:
    verdict = decide(f"my key is {KEY}", secrets="keep", meta={"topic": "work"})
    assert verdict.turn.evidence.content == f"my key is {KEY}"
    assert verdict.turn.meta == {"topic": "work", SECRETS_KEY: ["AWS access key"]}
    assert verdict.turn.evidence.meta == {SECRETS_KEY: ["AWS access key"]}
    assert verdict.warnings == ("Secrets were kept unencrypted: AWS access key.",)


def test_user_metadata_of_the_same_name_is_kept() -> None:
    assert decide(KEY, secrets="keep", meta={SECRETS_KEY: "mine"}).turn.meta == {
        SECRETS_KEY: "mine"
    }


def test_secrets_in_metadata_name_and_source_are_redacted_too() -> None:
    said = Evidence("I like tea", name=f"Ann {KEY}", source=f"https://bob:{KEY}@example.org/x")
    turn = InputTurn(said, {"deep": [{"key": KEY}, 5, None], "plain": "text"})
    verdict = decide_turn(turn, "default", Settings(), EchoFilter())
    assert KEY not in repr(verdict)
    assert verdict.turn.meta["plain"] == "text"
    assert verdict.turn.meta["deep"][1:] == [5, None]
    assert (
        decide_turn(turn, "default", Settings(secrets="reject"), EchoFilter()).outcome == "refuse"
    )


def test_a_skipped_turn_is_redacted_in_the_evidence() -> None:
    verdict = decide(f"2024-05-01 10:00:00 INFO using {KEY}")
    assert (verdict.outcome, verdict.reason) == ("skip", "infrastructure noise")
    assert KEY not in verdict.turn.evidence.content


@pytest.mark.parametrize(
    ("policy", "kept"), [("redact", "is [redacted: AWS access key]"), ("keep", f"is {KEY}")]
)
def test_an_updated_text_is_screened(policy: str, kept: str) -> None:
    text, warnings = screen_text(f"is {KEY}", Settings(secrets=policy))
    assert text == kept
    assert len(warnings) == 1
    assert screen_text("I like tea", Settings(secrets=policy)) == ("I like tea", ())


def test_the_error_for_a_rejected_secret_does_not_repeat_it() -> None:
    with pytest.raises(InvalidInput, match="AWS access key") as caught:
        screen_text(f"is {KEY}", Settings(secrets="reject"))
    assert KEY not in str(caught.value)


# Complete adds


def admit(messages: Any, **knobs: Any) -> GateResult:
    settings = Settings(**knobs)
    said = parse_messages(messages, metadata=None, timestamp=None, source=None, settings=settings)
    return apply_gate(said, "default", settings, EchoFilter())


@each_row("text", ["ok", "thanks!", "ping", CONTEXT, "You are a helpful assistant.", "..."])
def test_verbatim_messages_are_never_skipped(text: str) -> None:
    turn = InputTurn(Evidence(text), {})
    assert decide_turn(turn, "default", Settings(), EchoFilter()).outcome == "skip"
    assert decide_turn(turn, "default", Settings(), EchoFilter(), verbatim=True) == GateDecision(
        "keep", turn, strip_context_blocks(text)
    )


def test_a_secret_is_refused_even_in_verbatim_messages() -> None:
    turn = InputTurn(Evidence(KEY), {})
    assert (
        decide_turn(
            turn, "default", Settings(secrets="reject"), EchoFilter(), verbatim=True
        ).outcome
        == "refuse"
    )


def test_the_receipt_names_skipped_messages_by_index() -> None:
    messages = [
        {"role": "system", "content": "Be brief"},
        {"role": "user", "content": "hello"},
        "I like tea",
        " ",
        f"{KEY} {KEY}",
        {"role": "assistant", "content": "ok"},
        f"{CONTEXT} I like rice",
        f"{CONTEXT} I like soup",
    ]
    found = admit(messages, secrets="reject")
    assert [(row["index"], row["role"], row["reason"]) for row in found.skipped] == [
        (0, "system", "system message"),
        (1, "user", "nothing but filler words"),
        (3, "user", "empty message"),
        (4, "user", "secret: AWS access key"),
        (5, "assistant", "nothing but filler words"),
    ]
    assert [verdict.own_text.text for verdict in found.decisions] == [
        "hello",
        "I like tea",
        "ok",
        "I like rice",
        "I like soup",
    ]
    assert [verdict.outcome for verdict in found.decisions] == [
        "skip",
        "keep",
        "skip",
        "keep",
        "keep",
    ]
    assert found.warnings == (ECHO_WARNING,), "what is said twice is warned of once"


def test_a_plain_add_is_unchanged() -> None:
    found = admit(["I like tea", "I like rice"])
    assert [verdict.turn.evidence.content for verdict in found.decisions] == [
        "I like tea",
        "I like rice",
    ]
    assert (found.skipped, found.warnings) == ((), ())


# Echoes


def test_a_context_block_is_not_extracted_but_kept_in_the_evidence() -> None:
    verdict = decide(f"{CONTEXT}\n\nI moved to Oslo")
    assert verdict.outcome == "keep"
    assert verdict.own_text.text == "I moved to Oslo"
    assert verdict.turn.evidence.content == f"{CONTEXT}\n\nI moved to Oslo"
    assert verdict.warnings == (ECHO_WARNING,)
    start, end = verdict.own_text.to_source_span(11, 15)
    assert verdict.turn.evidence.content[start:end] == "Oslo"


def test_text_beside_a_context_block_passes_the_same_gate() -> None:
    assert decide(f"{CONTEXT} ok thanks").reason == "nothing but filler words"


def test_a_context_block_alone_is_an_echo() -> None:
    assert decide(CONTEXT, "assistant").reason == "echo of recalled memories"


def test_lines_this_process_rendered_are_not_extracted() -> None:
    echoes = EchoFilter()
    echoes.record_prompt("default", CONTEXT)
    assert decide("3 Mar Ann: I like tea", echoes=echoes).reason == "echo of recalled memories"
    assert (
        decide("3 Mar Ann: I like tea\nMe too, and cake", echoes=echoes).own_text.text
        == "Me too, and cake"
    )
    assert decide("I like tea", echoes=echoes).outcome == "keep"


# Invariants

texts = st.text(max_size=120) | st.sampled_from(
    [*MEANINGFUL, *(text for rows in SKIPPED.values() for text in rows), CONTEXT, KEY]
)


@given(
    texts,
    st.sampled_from(("user", "assistant", "tool", "system")),
    st.sampled_from(("redact", "reject", "keep")),
    st.booleans(),
)
def test_verdict_fields_are_consistent(text: str, role: str, policy: str, gate: bool) -> None:
    verdict = decide(text, role, secrets=policy, gate=gate)
    assert (verdict.outcome == "keep") == (verdict.reason == "")
    assert verdict.outcome != "refuse" or policy == "reject"
    assert verdict.turn.evidence.role == role
    assert KEY not in verdict.turn.evidence.content or policy == "keep"
    again = decide_turn(verdict.turn, "default", Settings(secrets=policy, gate=gate), EchoFilter())
    assert policy == "reject" or again.outcome == verdict.outcome, "what was judged is judged alike"


@given(texts)
def test_own_text_maps_to_the_same_characters_of_the_evidence(text: str) -> None:
    verdict = decide(text)
    heard, whole = verdict.own_text.text, verdict.turn.evidence.content
    for place in range(0, len(heard), 7):
        if heard[place] != "\n":
            start, end = verdict.own_text.to_source_span(place, place + 1)
            assert whole[start:end] == heard[place]


@given(
    st.lists(
        st.sampled_from(("apple", "Berlin", "seven", "guitar", "likes", "my")),
        min_size=1,
        max_size=6,
    ).map(" ".join)
)
def test_a_text_with_a_content_word_is_never_filler_or_noise(text: str) -> None:
    if text.split() != ["my"] * len(text.split()):
        assert not any(test(text) for test in (is_filler, is_noise, is_prompt))


@given(st.text(max_size=50))
def test_any_letter_makes_a_text_long_enough_for_limit_one(text: str) -> None:
    assert not is_short(text, 1) or not any(char.isalnum() for char in text)
    assert not is_short(text, 0)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "2024-05-01 10:00:00 " + "INFO " * 19_000,
        "at " * 33_000,
        "at a" + "." * 99_000,
        "ping ok " * 12_000,
        "You are a " + "very " * 19_000,
        "# AGENTS" * 12_000,
        "{" * 50_000,
        "[" * 1_999,
        "connection " * 9_000,
        "\n" * 100_000,
        "[INFO] x\n" * 11_000,
        "GET /" + "a" * 99_000,
        "=" * 100_000,
        "<!--" * 25_000,
        "hello " * 16_000,
        "Traceback (most recent call last):\n" + "  x\n" * 20_000,
        "a.b." * 25_000 + "Error",
    ],
)
def test_hostile_text_is_judged_in_linear_time(text: str) -> None:
    assert decide(text).outcome in ("keep", "skip")
