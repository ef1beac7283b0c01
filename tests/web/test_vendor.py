"""The scripts of others that the pages load."""

from scripts.vendor import find_differences, read_manifest


def test_the_scripts_of_others_are_those_of_their_releases_with_their_licenses() -> None:
    assert list(find_differences()) == []
    manifest = read_manifest()
    packages = {entry["package"] for entry in manifest.values()}
    licensed = {entry["package"] for name, entry in manifest.items() if name.endswith(".LICENSE")}
    assert licensed == packages
