from denizen.adapters.models.embedded.child_process import pick_environment

_ENVIRON = {
    "PATH": "/bin",
    "OPENAI_API_KEY": "secret",
    "DISCORD_TOKEN": "secret",
    "DATABASE_URL": "postgres://secret",
    "https_proxy": "http://proxy",
    "PIP_INDEX_URL": "index",
    "UV_OFFLINE": "1",
}


def test_a_model_server_sees_neither_tokens_nor_proxies() -> None:
    assert pick_environment(_ENVIRON) == {"PATH": "/bin"}


def test_a_package_tool_sees_proxies_and_its_settings_but_no_tokens() -> None:
    picked = pick_environment(_ENVIRON, for_packages=True)

    assert picked.keys() == {"PATH", "https_proxy", "PIP_INDEX_URL", "UV_OFFLINE"}
