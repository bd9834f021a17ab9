"""Secret detection and redaction; every secret here is generated at run time."""

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


def random_text(size: int, alphabet: str = LETTERS, seed: int = 7) -> str:
    """Return random characters with some of each class."""
    made = random.Random(seed).choices(alphabet, k=size)
    made[: size // 4] = (alphabet[-1 - n % 10] for n in range(size // 4))
    return "".join(random.Random(seed).sample(made, size))


def fence(sort: str, label: str = "") -> str:
    return f"-----{sort} {label}PRIVATE KEY-----"


PEM = (
    f"{fence('BEGIN', 'RSA ')}\n"
    + "\n".join(random_text(64, seed=n) for n in range(5))
    + f"\n{fence('END', 'RSA ')}"
)
BASE64 = LETTERS + "+/"

SAMPLES = {
    "AWS access key": "AKIA" + random_text(16, string.ascii_uppercase + "234567"),
    "AWS secret key": "aws_secret_access_key = " + random_text(40, BASE64),
    "Google API key": "AIza" + random_text(35),
    "Google OAuth secret": "GOCSPX-" + random_text(28),
    "Google access token": "ya29." + random_text(60),
    "Azure storage key": "DefaultEndpointsProtocol=https;AccountKey="
    + random_text(86, BASE64)
    + "==",
    "Azure shared access key": "Endpoint=sb://x;SharedAccessKey=" + random_text(43, BASE64) + "=",
    "Azure shared access signature": "https://a.blob.core.windows.net/c?sv=2024&sig="
    + random_text(43)
    + "%3D",
    "Azure client secret": "abc8Q~" + random_text(34),
    "GitHub token": "ghp_" + random_text(36),
    "GitLab token": "glpat-" + random_text(20),
    "Slack token": "xoxb-" + random_text(12, string.digits) + "-" + random_text(24),
    "Slack webhook": "https://hooks.slack.com/services/T0"
    + random_text(8)
    + "/B0"
    + random_text(8)
    + "/"
    + random_text(24),
    "Stripe key": "sk_live_" + random_text(24),
    "OpenAI API key": "sk-proj-" + random_text(48),
    "Anthropic API key": "sk-ant-api03-" + random_text(80),
    "Hugging Face token": "hf_" + random_text(34),
    "Groq API key": "gsk_" + random_text(52),
    "xAI API key": "xai-" + random_text(80),
    "Replicate token": "r8_" + random_text(37),
    "npm token": "npm_" + random_text(36),
    "PyPI token": "pypi-AgEIcHlwaS5vcmc" + random_text(60),
    "SendGrid API key": "SG." + random_text(22) + "." + random_text(43),
    "Mailgun API key": "key-" + random_text(32, HEX),
    "Mailchimp API key": random_text(32, HEX) + "-us12",
    "Twilio API key": "SK" + random_text(32, HEX),
    "Telegram bot token": "123456789:AA" + random_text(33),
    "Discord bot token": "MTA" + random_text(23) + ".G" + random_text(5) + "." + random_text(38),
    "Discord webhook": "https://discord.com/api/webhooks/123456789012345678/" + random_text(68),
    "Shopify token": "shpat_" + random_text(32, HEX),
    "Square token": "sq0csp-" + random_text(43),
    "DigitalOcean token": "dop_v1_" + random_text(64, HEX),
    "Databricks token": "dapi" + random_text(32, HEX),
    "Docker token": "dckr_pat_" + random_text(27),
    "Vault token": "hvs." + random_text(90),
    "Terraform token": random_text(14) + ".atlasv1." + random_text(67),
    "Linear API key": "lin_api_" + random_text(40),
    "Notion token": "ntn_" + random_text(46),
    "Airtable token": "pat" + random_text(14) + "." + random_text(64, HEX),
    "Grafana token": "glsa_" + random_text(32) + "_" + random_text(8, HEX),
    "Sentry token": "sntrys_" + random_text(60),
    "New Relic key": "NRAK-" + random_text(27, string.ascii_uppercase + string.digits),
    "age key": "AGE-SECRET-KEY-1" + random_text(58, string.ascii_uppercase + string.digits),
    "JSON web token": "eyJ" + random_text(30) + ".eyJ" + random_text(60) + "." + random_text(43),
    "private key": PEM,
    "database password": "postgresql+asyncpg://bob:" + random_text(9) + "@db.internal:5432/app",
    "password in a URL": "https://bob:" + random_text(9) + "@example.org/x",
    "bearer token": "curl -H 'Authorization: Bearer " + random_text(40) + "'",
    "basic credentials": "Authorization: Basic " + random_text(24, BASE64),
    "password": "my password is hunter2",
    "key or token": "client_secret: '" + random_text(24) + "'",
    "social security number": "my SSN is 078-05-1120",
    "payment card": "4242 4242 4242 4242",
    "bank account": "DE89 3704 0044 0532 0130 00",
}


@each_row("kind", SAMPLES)
def test_a_secret_of_each_type_is_found_and_redacted(kind: str) -> None:
    text = f"Please note: {SAMPLES[kind]} and thank you"
    assert [secret.kind for secret in find_secrets(text)] == [kind]
    hidden = redact(text)
    assert f"[redacted: {kind}]" in hidden
    assert hidden.startswith("Please note: ")
    assert hidden.endswith(" and thank you")


@each_row("kind", SAMPLES)
def test_redacted_text_contains_no_secret(kind: str) -> None:
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
        "api_key: " + random_text(20),
        "API key = " + random_text(32, HEX),
        "X-Auth-Token: " + random_text(30),
        '"apiKey": "' + random_text(24) + '"',
        "secret=" + random_text(16),
        "the access token is " + random_text(24),
        "api_key=550e8400-e29b-41d4-a716-446655440000",
        "sk-" + random_text(48),
        "sk-or-v1-" + random_text(64, HEX),
        "glrt-" + random_text(20),
        "xapp-1-A0" + random_text(20),
        "rk_test_" + random_text(24),
        "whsec_" + random_text(32),
        "github_pat_" + random_text(60),
        "redis://:" + random_text(8) + "@localhost:6379/0",
        "mongodb+srv://u:" + random_text(8) + "@cluster0.mongodb.net",
        "ftp://bob:" + random_text(8) + "@host",
        f"{fence('BEGIN')}\n{random_text(64)}\n{random_text(64)}",
        "-----BEGIN PGP PRIVATE KEY "
        "BLOCK-----\n\n" + random_text(64) + "\n-----END PGP PRIVATE KEY " + "BLOCK-----",
        '{"private_key": "'
        + fence("BEGIN")
        + "\\n"
        + random_text(64)
        + "\\n"
        + fence("END")
        + '\\n"}',
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n"
        + random_text(40),
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
def test_text_that_only_looks_like_a_secret_is_not_redacted(text: str) -> None:
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
def test_hostile_text_is_scanned_in_linear_time(name: str) -> None:
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
def test_secrets_are_ordered_and_do_not_overlap(text: str) -> None:
    end = 0
    for secret in find_secrets(text):
        assert end <= secret.start < secret.end <= len(text)
        end = secret.end


@given(texts)
def test_redaction_is_idempotent_and_keeps_other_text(text: str) -> None:
    hidden = redact(text)
    assert redact(hidden) == hidden
    rest, end = [], 0
    for secret in find_secrets(text):
        rest.append(text[end : secret.start])
        end = secret.end
    assert all(part in hidden for part in (*rest, text[end:]))


@given(st.text(string.ascii_lowercase + " .,'\n", max_size=300))
def test_prose_without_digits_is_never_redacted(text: str) -> None:
    assert redact(text) == text


@given(st.uuids())
def test_no_uuid_is_a_secret(value: object) -> None:
    assert find_secrets(f"see {value} there") == ()


@given(st.text(HEX, min_size=7, max_size=64))
def test_no_hash_is_a_secret(digest: str) -> None:
    assert not any(secret.kind != "payment card" for secret in find_secrets(f"commit {digest}."))


@given(st.integers(0, 10**14 - 1), st.integers(0, 8))
def test_a_card_number_with_a_wrong_digit_is_not_a_secret(number: int, change: int) -> None:
    body = f"4{number:014d}"
    right = next(f"{body}{digit}" for digit in range(10) if is_luhn_valid(f"{body}{digit}"))
    wrong = right[:-1] + str((int(right[-1]) + change + 1) % 10)
    assert find_secrets(f"card {right}") == (Secret("payment card", 5, 21),)
    assert find_secrets(f"card {wrong}") == ()


@given(st.integers(0, 10**18 - 1))
def test_an_account_number_needs_valid_check_digits(number: int) -> None:
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


def test_entropy_is_zero_for_one_letter_and_four_bits_for_sixteen() -> None:
    assert (compute_entropy("aaaa"), compute_entropy("0123456789abcdef")) == (0.0, 4.0)


@each_row(
    ("text", "kind"),
    [
        ("see ab://:x@h", "password in a URL"),
        ("see bolt://:x@h", "database password"),
        (f"so {fence('BEGIN')} it", "private key"),
        ("Authorization : basic dXNlcjp4", "basic credentials"),
        ("bearer " + random_text(20), "bearer token"),
        ("pwd is a1b2", "password"),
        ("ssn 123 45 6789", "social security number"),
        ("3782 822463 10005", "payment card"),
        ("378282246310005", "payment card"),
        ("4242-4242-4242-4242", "payment card"),
        ("NO93 8601 1117 947", "bank account"),
    ],
)
def test_the_shortest_secret_of_a_type_is_found_among_short_words(text: str, kind: str) -> None:
    assert [secret.kind for secret in find_secrets(text)] == [kind]
