"""What child processes get to see of the environment: only what they need, so no tokens and no API keys.

Called by `runtime` (the model server) and `pull` (uv and pip).
"""

from collections.abc import Mapping

_BASIC = frozenset(
    {
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "SYSTEMROOT",
        "TMPDIR",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
    }
)
_PACKAGES = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"}
)
_PACKAGES_PREFIXES = ("PIP_", "UV_", "XDG_")


def pick_environment(environ: Mapping[str, str], *, for_packages: bool = False) -> dict[str, str]:
    """The part of the environment that a child may see; with proxies and index settings for package tools."""

    def allowed(name: str) -> bool:
        if name in _BASIC:
            return True
        return for_packages and (name.upper() in _PACKAGES or name.startswith(_PACKAGES_PREFIXES))

    return {name: value for name, value in environ.items() if allowed(name)}
