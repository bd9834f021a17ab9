"""Secrets are found and hidden, and what only looks like one passes; each secret here is made up at
run time.
"""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.text.secrets import (
    Secret,
    compute_entropy,
    find_secrets,
    is_luhn_valid,
    is_mod97_valid,
    redact,
)

LETTERS = string.ascii_letters + string.digits
HEX = string.digits + "abcdef"


def run(size: int, alphabet: str = LETTERS, seed: int = 7) -> str:
    """Random characters, of each sort some."""
    made = random.Random(seed).choices(alphabet, k=size)
    made[: size // 4] = (alphabet[-1 - n % 10] for n in range(size // 4))
    return "".join(random.Random(seed).sample(made, size))


def fence(sort: str, label: str = "") -> str:
    return f"-----{sort} {label}PRIVATE KEY-----"


PEM = (
    f"{fence('BEGIN', 'RSA ')}\n"
    + "\n".join(run(64, seed=n) for n in range(5))
    + f"\n{fence('END', 'RSA ')}"
)
BASE64 = LETTERS + "+/"

SAMPLES = {
    "AWS access key": "AKIA" + run(16, string.ascii_uppercase + "234567"),
    "AWS secret key": "aws_secret_access_key = " + run(40, BASE64),
    "Google API key": "AIza" + run(35),
    "Google OAuth secret": "GOCSPX-" + run(28),
    "Google access token": "ya29." + run(60),
    "Azure storage key": "DefaultEndpointsProtocol=https;AccountKey=" + run(86, BASE64) + "==",
    "Azure shared access key": "Endpoint=sb://x;SharedAccessKey=" + run(43, BASE64) + "=",
    "Azure shared access signature": "https://a.blob.core.windows.net/c?sv=2024&sig="
    + run(43)
    + "%3D",
    "Azure client secret": "abc8Q~" + run(34),
    "GitHub token": "ghp_" + run(36),
    "GitLab token": "glpat-" + run(20),
    "Slack token": "xoxb-" + run(12, string.digits) + "-" + run(24),
    "Slack webhook": "https://hooks.slack.com/services/T0"
    + run(8)
    + "/B0"
    + run(8)
    + "/"
    + run(24),
    "Stripe key": "sk_live_" + run(24),
    "OpenAI API key": "sk-proj-" + run(48),
    "Anthropic API key": "sk-ant-api03-" + run(80),
    "Hugging Face token": "hf_" + run(34),
    "Groq API key": "gsk_" + run(52),
    "xAI API key": "xai-" + run(80),
    "Replicate token": "r8_" + run(37),
    "npm token": "npm_" + run(36),
    "PyPI token": "pypi-AgEIcHlwaS5vcmc" + run(60),
    "SendGrid API key": "SG." + run(22) + "." + run(43),
    "Mailgun API key": "key-" + run(32, HEX),
    "Mailchimp API key": run(32, HEX) + "-us12",
    "Twilio API key": "SK" + run(32, HEX),
    "Telegram bot token": "123456789:AA" + run(33),
    "Discord bot token": "MTA" + run(23) + ".G" + run(5) + "." + run(38),
    "Discord webhook": "https://discord.com/api/webhooks/123456789012345678/" + run(68),
    "Shopify token": "shpat_" + run(32, HEX),
    "Square token": "sq0csp-" + run(43),
    "DigitalOcean token": "dop_v1_" + run(64, HEX),
    "Databricks token": "dapi" + run(32, HEX),
    "Docker token": "dckr_pat_" + run(27),
    "Vault token": "hvs." + run(90),
    "Terraform token": run(14) + ".atlasv1." + run(67),
    "Linear API key": "lin_api_" + run(40),
    "Notion token": "ntn_" + run(46),
    "Airtable token": "pat" + run(14) + "." + run(64, HEX),
    "Grafana token": "glsa_" + run(32) + "_" + run(8, HEX),
    "Sentry token": "sntrys_" + run(60),
    "New Relic key": "NRAK-" + run(27, string.ascii_uppercase + string.digits),
    "age key": "AGE-SECRET-KEY-1" + run(58, string.ascii_uppercase + string.digits),
    "JSON web token": "eyJ" + run(30) + ".eyJ" + run(60) + "." + run(43),
    "private key": PEM,
    "database password": "postgresql+asyncpg://bob:" + run(9) + "@db.internal:5432/app",
    "password in a URL": "https://bob:" + run(9) + "@example.org/x",
    "bearer token": "curl -H 'Authorization: Bearer " + run(40) + "'",
    "basic credentials": "Authorization: Basic " + run(24, BASE64),
    "password": "my password is hunter2",
    "key or token": "client_secret: '" + run(24) + "'",
    "social security number": "my SSN is 078-05-1120",
    "payment card": "4242 4242 4242 4242",
    "bank account": "DE89 3704 0044 0532 0130 00",
}


@each_row("kind", SAMPLES)
def test_a_secret_of_each_sort_is_found_and_hidden(kind: str) -> None:
    text = f"Please note: {SAMPLES[kind]} and thank you"
    assert [secret.kind for secret in find_secrets(text)] == [kind]
    hidden = redact(text)
    assert f"[redacted: {kind}]" in hidden
    assert hidden.startswith("Please note: ")
    assert hidden.endswith(" and thank you")


@each_row("kind", SAMPLES)
def test_what_was_redacted_holds_no_secret(kind: str) -> None:
    hidden = redact(f"a {SAMPLES[kind]} b\n{SAMPLES[kind]}")
    assert find_secrets(hidden) == ()
    assert redact(hidden) == hidden


@each_row(
    "text",
    [
        "password=Xk29-aa7",
        "passwd: Tr0ub4dor&3",
        'PASSWORD="p@ssphrase"',
        "DB_PASSWORD=1q2w3e4r",
        "pwd: 123456",
        "Mein Passwort ist Sommer2024",
        "mi contraseña es gato123",
        "**Password:** abc12345",
        "the passphrase is corr3ct-horse",
        "api_key: " + run(20),
        "API key = " + run(32, HEX),
        "X-Auth-Token: " + run(30),
        '"apiKey": "' + run(24) + '"',
        "secret=" + run(16),
        "the access token is " + run(24),
        "api_key=550e8400-e29b-41d4-a716-446655440000",
        "sk-" + run(48),
        "sk-or-v1-" + run(64, HEX),
        "glrt-" + run(20),
        "xapp-1-A0" + run(20),
        "rk_test_" + run(24),
        "whsec_" + run(32),
        "github_pat_" + run(60),
        "redis://:" + run(8) + "@localhost:6379/0",
        "mongodb+srv://u:" + run(8) + "@cluster0.mongodb.net",
        "ftp://bob:" + run(8) + "@host",
        f"{fence('BEGIN')}\n{run(64)}\n{run(64)}",
        "-----BEGIN PGP PRIVATE KEY "
        "BLOCK-----\n\n" + run(64) + "\n-----END PGP PRIVATE KEY " + "BLOCK-----",
        '{"private_key": "' + fence("BEGIN") + "\\n" + run(64) + "\\n" + fence("END") + '\\n"}',
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n" + run(40),
        "4111111111111111",
        "5555-5555-5555-4444",
        "3782 822463 10005",
        "6011000990139424",
        "30569309025904",
        "GB29NWBK60161331926819",
        "FR14 2004 1010 0505 0001 3M02 606, thanks",
        "NO9386011117947",
        "CH93 0076 2011 6238 5295 7.",
    ],
)
def test_common_forms_of_secrets_are_found(text: str) -> None:
    assert len(find_secrets(text)) == 1, redact(text)


@each_row(
    "text",
    [
        "",
        "tea",
        "I moved to Berlin in March and my sister's name is Anna.",
        "550e8400-e29b-41d4-a716-446655440000",
        "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "d41d8cd98f00b204e9800998ecf8427e",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "git checkout 1a2b3c4d5e6f7a8b9c0d",
        "Call me at +49 170 1234567 or (555) 123-4567",
        "+1 415 555 2671",
        "0043 660 1234567",
        "my number is 4155552671",
        "2024-05-01T10:00:00Z",
        "1714557600000",
        "1714557600000000",
        "order 1234 5678 9012 3456",
        "ISBN 978-3-16-148410-0",
        "snowflake 1098765432109876543",
        "4.1111111111111111",
        "1,234,567,890,123",
        "3.14159265358979323846",
        "the password is required",
        "I forgot my password.",
        "password: forgotten",
        "My password is too long",
        "password manager: Bitwarden",
        "password is 8-character",
        "password: <your-password>",
        "password=${DB_PASSWORD}",
        "password: ********",
        "reset password",
        "the password is case-sensitive",
        "hashed_password = argon2.hash_password2(password)",
        "password is in 1Password",
        "Password: see the wiki",
        "secret: patience and time",
        "My secret is that I love karaoke",
        "the secret to happiness is friends",
        "token: a word or a part of one",
        "max_tokens=4096",
        "the key is under the mat",
        "key: C major",
        "primary key: customer_id",
        "api_key=YOUR_API_KEY_HERE_12345",
        "api_key: os.environ['API_KEY_2']",
        "token = process.env.TOKEN_V2_PROD",
        "api key is at https://example.org/keys1",
        "access token expires in 3600 seconds",
        "secret project: apollo-11-launch-2024",
        "The secret is out: version 2.0.13-beta",
        "sk-learn-based-classifier-models-are-great",
        "task-based-learning-with-a-long-hyphenated-name",
        "risk-adjusted",
        "https://example.org/a/b?c=d",
        "mailto:bob@example.org",
        "git@github.com:owner/repo.git",
        "ssh://git@host:22/x",
        "postgres://user:password@localhost/db",
        "http://user:<password>@host",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ bob@host",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "AKIA is how AWS keys begin",
        "hf_hub_download is a function",
        "npm_config_registry",
        "ghp_short",
        "eyJ is how tokens begin",
        "A bearer of good news",
        "Bearer token required",
        "basic needs",
        "DE89 3704 0044 0532 0130 01",
        "GB82 WEST 1234",
        "4242 4242 4242 4241",
        "SSN stands for social security number",
        "patience is a virtue",
        "東京に住んでいます。パスワード：なし",
        "AC2f0b8c7d6e5f4a3b2c1d0e9f8a7b6c5d is the account",
        "I use SG.com and ya29.org",
        "Die Katze heißt Minka",
        "commit 9fceb02 (tag: v1.2.3, origin/main)",
        "/home/bob/projects/secret-santa-2024/notes.md",
        "id=0190163d-8694-739b-aea5-966c26f8ad91 ok",
        "eyJhbGciOiJIUzI1NiJ9 alone is only a header",
    ],
)
def test_what_only_looks_like_a_secret_passes(text: str) -> None:
    assert find_secrets(text) == (), redact(text)
    assert redact(text) == text


HOSTILE = {
    "one letter": "a" * 100_000,
    "one digit": "4" * 100_000,
    "digits in groups": "4111 " * 20_000,
    "capitals": "DE89" * 25_000,
    "capitals in groups": "DE89 " * 20_000,
    "fences that never end": fence("BEGIN") * 3_000,
    "fences and dashes": (fence("BEGIN") + "-" * 50) * 1_500,
    "schemes": "a://" * 25_000,
    "logins": "x://y:" * 17_000,
    "json web tokens torn off": "eyJ" * 33_000,
    "json web tokens with dots": "eyJaaaaaaaa." * 8_000,
    "passwords": "password=" * 11_000,
    "passwords and spaces": "password   is   " * 6_000,
    "tokens": "token: " * 14_000,
    "keys": "api_key" * 14_000,
    "bearers": "bearer " * 14_000,
    "putty": ("PuTTY-User-Key-File-3: x\n" + "a" * 64 + "\n") * 1_000,
    "prefixes": "ghp_sk-AKIAxoxb-glpat-hf_npm_" * 3_400,
    "discord": ("M" * 24 + ".") * 4_000,
    "social security": "ssn " * 25_000,
    "white space": "password" + " " * 99_000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_no_more_than_linear_time(name: str) -> None:
    found = find_secrets(HOSTILE[name])
    assert all(0 <= secret.start < secret.end <= len(HOSTILE[name]) for secret in found)


pieces = st.sampled_from(
    [
        *SAMPLES.values(),
        "tea",
        "Berlin",
        ". ",
        "\n",
        " ",
        ": ",
        "=",
        '"',
        "password",
        "4",
        "漢字",
        "é",
    ]
)
texts = st.lists(pieces, max_size=8).map(" ".join) | st.text(max_size=200)


@given(texts)
def test_secrets_stand_in_order_and_apart(text: str) -> None:
    end = 0
    for secret in find_secrets(text):
        assert end <= secret.start < secret.end <= len(text)
        end = secret.end


@given(texts)
def test_redacting_twice_is_redacting_once_and_leaves_the_rest_alone(text: str) -> None:
    hidden = redact(text)
    assert redact(hidden) == hidden
    rest, end = [], 0
    for secret in find_secrets(text):
        rest.append(text[end : secret.start])
        end = secret.end
    assert all(part in hidden for part in (*rest, text[end:]))


@given(st.text(string.ascii_lowercase + " .,'\n", max_size=300))
def test_prose_without_digits_is_never_touched(text: str) -> None:
    assert redact(text) == text


@given(st.uuids())
def test_no_uuid_is_a_secret(value: object) -> None:
    assert find_secrets(f"see {value} there") == ()


@given(st.text(HEX, min_size=7, max_size=64))
def test_no_hash_is_a_secret(digest: str) -> None:
    assert not any(secret.kind != "payment card" for secret in find_secrets(f"commit {digest}."))


@given(st.integers(0, 10**14 - 1), st.integers(0, 8))
def test_a_card_with_one_wrong_digit_is_none(number: int, change: int) -> None:
    body = f"4{number:014d}"
    right = next(f"{body}{digit}" for digit in range(10) if is_luhn_valid(f"{body}{digit}"))
    wrong = right[:-1] + str((int(right[-1]) + change + 1) % 10)
    assert find_secrets(f"card {right}") == (Secret("payment card", 5, 21),)
    assert find_secrets(f"card {wrong}") == ()


@given(st.integers(0, 10**18 - 1))
def test_an_account_needs_its_check_digits(number: int) -> None:
    account = next(
        f"DE{check:02d}{number:018d}"
        for check in range(2, 99)
        if is_mod97_valid(f"DE{check:02d}{number:018d}")
    )
    assert [
        secret.kind
        for secret in find_secrets(f"to {account} please")
        if secret.kind == "bank account"
    ] == ["bank account"]
    other = f"DE{(int(account[2:4]) + 1) % 97:02d}{account[4:]}"
    assert not is_mod97_valid(other)


def test_entropy_is_none_of_one_letter_and_four_bits_of_sixteen() -> None:
    assert (compute_entropy("aaaa"), compute_entropy("0123456789abcdef")) == (0.0, 4.0)


@each_row(
    ("text", "kind"),
    [
        ("see ab://:x@h", "password in a URL"),
        ("see bolt://:x@h", "database password"),
        (f"so {fence('BEGIN')} it", "private key"),
        ("Authorization : basic dXNlcjp4", "basic credentials"),
        ("bearer " + run(20), "bearer token"),
        ("pwd is a1b2", "password"),
        ("ssn 123 45 6789", "social security number"),
        ("3782 822463 10005", "payment card"),
        ("378282246310005", "payment card"),
        ("4242-4242-4242-4242", "payment card"),
        ("NO93 8601 1117 947", "bank account"),
    ],
)
def test_the_shortest_secret_of_a_sort_is_found_among_short_words(text: str, kind: str) -> None:
    assert [secret.kind for secret in find_secrets(text)] == [kind]
