"""Which addresses and ports a fetch may reach."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.fetch.addresses import AllowList, find_port_refusal, find_refusal, is_cloud_metadata
from denizen.adapters.fetch.http import is_own_address
from denizen.domain.errors import InvalidInput

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.0.9",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "100.100.100.200",
    "::",
    "::1",
    "::2",
    "::7f00:1",
    "::10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.1.2.3",
    "::ffff:169.254.169.254",
    "::ffff:0:7f00:1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::192.168.1.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:c0a8:101::1",
    "2002:a9fe:a9fe::",
    "2606:4700::5efe:10.0.0.1",
    "2606:4700::200:5efe:127.0.0.1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "4000::1",
]

ALLOWED = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "198.17.255.255",
    "223.255.255.255",
    "2606:4700::6810:84e5",
    "2a00:1450:4001:80e::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]


@pytest.mark.proves("VW5")
@pytest.mark.parametrize("text", REFUSED)
def test_special_addresses_are_refused_in_every_family_and_disguise(text: str) -> None:
    assert find_refusal(ip_address(text))


@pytest.mark.parametrize("text", ALLOWED)
def test_addresses_of_the_public_internet_are_not_refused(text: str) -> None:
    assert find_refusal(ip_address(text)) is None


@pytest.mark.proves("VW5")
@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_is_judged_alike_however_ipv6_carries_it(number: int) -> None:
    plain = IPv4Address(number)
    refused = find_refusal(plain) is not None
    assert refused or plain.is_global
    for network in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert (find_refusal(IPv6Address(network)) is not None) == refused


@pytest.mark.proves("VW5")
@given(st.integers(0, 2**128 - 1))
def test_no_ipv6_address_outside_of_global_unicast_passes_unless_it_carries_a_public_ipv4_one(number: int) -> None:
    address = IPv6Address(number)
    if find_refusal(address) is None:
        assert number >> 125 == 1 or address.ipv4_mapped or number >> 32 == 0x64FF9B << 64


@pytest.mark.parametrize(
    ("port", "passes"),
    [(80, True), (443, True), (1024, True), (8080, True), (8443, True), (65_535, True)]
    + [(port, False) for port in (0, 1, 21, 22, 25, 110, 445, 1023, 2049, 3306, 5432, 6379, 6667, 11_211, 65_536)],
)
def test_ports_of_other_services_are_refused(port: int, passes: bool) -> None:
    assert (find_port_refusal(port) is None) is passes


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "admitted"),
    [
        ("10.0.0.0/8", "intranet", 80, "10.2.3.4", True),
        ("10.0.0.0/8", "intranet", 80, "11.2.3.4", False),
        ("192.168.1.5", "nas", 8080, "192.168.1.5", True),
        ("192.168.1.5", "nas", 8080, "192.168.1.6", False),
        ("fd12::/16", "nas", 8080, "fd12::5", True),
        ("weather.lan:8080", "weather.lan", 8080, "192.168.1.9", True),
        ("weather.lan:8080", "WEATHER.lan.", 8080, "192.168.1.9", True),
        ("weather.lan:8080", "weather.lan", 8081, "192.168.1.9", False),
        ("weather.lan:8080", "other.lan", 8080, "192.168.1.9", False),
        ("127.0.0.1:9", "127.0.0.1", 9, "127.0.0.1", True),
        ("[::1]:9", "0:0::1", 9, "::1", True),
        ("169.254.0.0/16", "x", 80, "169.254.169.254", False),
        ("0.0.0.0/0", "x", 80, "169.254.169.254", False),
        ("::/0", "x", 80, "::ffff:169.254.169.254", False),
        ("x:80", "x", 80, "169.254.169.254", False),
    ],
)
def test_the_operator_opens_networks_and_pairs_but_never_cloud_metadata(
    entry: str, host: str, port: int, address: str, admitted: bool
) -> None:
    assert AllowList([entry]).admits(host, port, ip_address(address)) is admitted


@pytest.mark.parametrize("entry", ["", "name", "http://name:80", "name:", ":80", "name:0", "name:70000", "10.0.0.0/33"])
def test_an_entry_that_opens_nothing_is_refused_with_a_remedy(entry: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        AllowList([entry])
    assert caught.value.code == "bad_allow_private"
    assert caught.value.fix


def test_metadata_is_known_in_disguise() -> None:
    assert is_cloud_metadata(ip_address("64:ff9b::169.254.169.254"))
    assert not is_cloud_metadata(ip_address("169.254.169.253"))


@pytest.mark.parametrize(
    ("own", "address", "port", "itself"),
    [
        (("8.8.8.8", 50_000), "8.8.8.8", 9000, True),
        (("8.8.8.8", 50_000), "8.8.8.8", 443, False),
        (("8.8.4.4", 50_000), "8.8.8.8", 9000, False),
        (None, "8.8.8.8", 9000, False),
    ],
)
def test_a_public_address_of_this_machine_is_no_way_to_its_hidden_ports(
    own: tuple[str, int] | None, address: str, port: int, itself: bool
) -> None:
    assert is_own_address(own, ip_address(address), port) is itself
