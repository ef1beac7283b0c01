"""`denizen doctor --bundle` and `--fix`: a report without secrets of any kind, and what is mended."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

KNOWN = "planted-provider-0123456789"
UNREFERENCED = "planted-unreferenced-0123456789"
SHAPED = {
    "openai": "sk-proj-Zx81mQpL0aVb72Tn",
    "github": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "slack": "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy",
    "discord": "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJVadQssw5c",
    "age": "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQS3290GS",
    "url": "pw-in-a-url-Hunter2!",
    "field": "literal-password-9931",
    "webhook": "wh-aZ0918273645aZ0918273645",
    "bearer": "bearer-value-0918273645",
    "pem": "MIIEpAIBAAKCAQEA7planted",
}
LINES = f"""\
openai {SHAPED["openai"]} github {SHAPED["github"]} slack {SHAPED["slack"]} discord {SHAPED["discord"]}
jwt {SHAPED["jwt"]} age {SHAPED["age"]} postgresql://denizen:{SHAPED["url"]}@db.example.org/denizen
password: {SHAPED["field"]}
https://discord.com/api/webhooks/1234/{SHAPED["webhook"]} Authorization: Bearer {SHAPED["bearer"]}
-----BEGIN RSA PRIVATE KEY----- {SHAPED["pem"]} -----END RSA PRIVATE KEY-----
"""


def read_bundle(file: Path) -> dict[str, str]:
    with tarfile.open(file) as archive:
        return {
            Path(each.name).name: opened.read().decode()
            for each in archive.getmembers()
            if (opened := archive.extractfile(each)) is not None
        }


def test_a_report_has_what_helps_and_no_secret_of_any_kind(home: Home, provider: Provider, tmp_path: Path) -> None:
    home.configure(provider.server.openai_url, more='api_key: "${PROVIDER_KEY}"')
    config = home.config.read_text(encoding="utf-8")
    home.write(config + "".join(f"# {line}\n" for line in LINES.splitlines()))
    secrets = home.folder / "secrets.env"
    secrets.write_text(f"PROVIDER_KEY={KNOWN}\nOTHER_TOKEN={UNREFERENCED}\n", encoding="utf-8")
    secrets.chmod(0o600)
    (home.folder / "logs").mkdir()
    entry = {"at": "2026-01-02T03:04:05Z", "level": "warning", "event": "planted", "fields": {"said": LINES + KNOWN}}
    (home.folder / "logs" / "2026-01-02.jsonl").write_text(json.dumps({**entry, "trace": UNREFERENCED}) + "\n")
    bundle = tmp_path / "report.tar.gz"
    done = home.do("doctor", "--offline", "--bundle", str(bundle))
    assert done.code == 0, done.out + done.err
    assert bundle.stat().st_mode & 0o777 == 0o600
    files = read_bundle(bundle)
    assert set(files) == {"doctor.txt", "versions.txt", "home.txt", "configuration.yaml", "log.jsonl"}
    assert "ok       tools\n" in files["doctor.txt"]
    assert "denizen " in files["versions.txt"] and "sqlalchemy==" in files["versions.txt"].lower()
    assert "${PROVIDER_KEY}" in files["configuration.yaml"] and "local/scripted" not in files["configuration.yaml"]
    assert "2026-01-02" in files["log.jsonl"] and "planted" not in files["log.jsonl"]
    everything = "\n".join(files.values())
    kept = [name for name, value in {**SHAPED, "known": KNOWN, "other": UNREFERENCED}.items() if value in everything]
    assert kept == []
    again = home.do("doctor", "--offline", "--bundle", str(bundle))
    assert "Name a file that is not there yet" in again.err


def test_fix_shows_what_it_mends_and_mends_it_when_told(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    secrets = home.folder / "secrets.env"
    secrets.write_text("A=b\n", encoding="utf-8")
    home.folder.chmod(0o755)
    secrets.chmod(0o644)
    declined = home.do("doctor", "--offline", "--fix", stdin="n\n")
    assert f"fix   {secrets}: mode 0644 -> 0600" in declined.out
    assert secrets.stat().st_mode & 0o777 == 0o644
    home.do("doctor", "--offline", "--fix", "--yes")
    assert (home.folder.stat().st_mode & 0o777, secrets.stat().st_mode & 0o777) == (0o700, 0o600)
    assert "fix   nothing that can be mended here" in home.do("doctor", "--offline", "--fix", "--yes").out
