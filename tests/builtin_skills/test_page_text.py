"""HTML to text: what is read, what is left out, and that no page takes long."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.builtin_skills.page_text import HtmlTag, extract_page_text, parse_html

URL = "https://example.org/docs/page.html"


def extract(html: str) -> str:
    return extract_page_text(html, URL).text


def test_a_page_reads_like_markdown() -> None:
    page = extract_page_text(
        """<!DOCTYPE html><html lang=en><head><title>Tea &amp; Cake</title><style>p{color:red}</style></head>
        <body><nav><ul><li><a href="/">Home</a></ul></nav>
        <h1>Tea <em>time</em></h1>
        <p title="5 > 3">Drink&nbsp;it <a href="../hot?x=1&amp;y=2#top">hot</a>.<p>Or cold:
        <ul><li>with ice<li>with <b>lemon</b></ul>
        <table><tr><th>kind<th>price<tr><td>green<td>3 &euro;</table>
        <pre><code>def brew():
    return  "tea"</code></pre>
        2 < 3 &lt; 4<br>end <img src="cup.png" alt="A  cup"> <img src="dot.gif">
        <script>if (a < b) { document.write("</p>") }</script><footer>(c) 2026</footer></body></html>""",
        URL,
    )
    assert page.title == "Tea & Cake"
    assert page.text == (
        "# Tea time\n\nDrink it [hot](https://example.org/hot?x=1&y=2).\n\nOr cold:\n\n- with ice\n- with lemon\n\n"
        '| kind | price\n| green | 3 €\n\ndef brew():\n    return  "tea"\n\n2 < 3 < 4\nend (image: A cup)'
    )


@pytest.mark.parametrize(
    "html",
    [
        "<div hidden>SMUGGLED</div>",
        "<div HIDDEN=''><p>a<p>SMUGGLED</div>",
        "<p style='color:red; Display : None'>SMUGGLED</p>",
        "<span style='visibility:hidden'>SMUGGLED</span>",
        "<span style='font-size:0px'>SMUGGLED</span>",
        "<span aria-hidden=true>SMUGGLED</span>",
        "<!-- SMUGGLED -->",
        "<!-- -- > SMUGGLED -->",
        "<!SMUGGLED>",
        "<?SMUGGLED?>",
        "</SMUGGLED>",
        "<script>SMUGGLED</script>",
        "<SCRIPT type=x>'</scrip>SMUGGLED'</SCRIPT >",
        "<style>SMUGGLED</style>",
        "<textarea><p>SMUGGLED</textarea>",
        "<template><p>SMUGGLED</template>",
        "<noscript>SMUGGLED</noscript>",
        "<svg><title>SMUGGLED</title></svg>",
        "<a title='SMUGGLED'>x</a>",
        "<meta content='SMUGGLED'>",
        "<div data-x='>' hidden>SMUGGLED</div>",
        "<div hidden><div>x</div>SMUGGLED</div>",
        "<iframe>SMUGGLED</iframe>",
    ],
)
def test_what_nobody_sees_on_the_page_is_not_read(html: str) -> None:
    page = extract_page_text(f"<title>t</title><p>before {html} after", URL)
    assert "SMUGGLED" not in page.text + page.title
    assert "before" in page.text
    assert "after" in page.text


def test_the_main_part_is_read_when_the_page_names_one() -> None:
    story = "It was a dark and stormy night. " * 10
    page = f"<header>Daily News</header><p>Subscribe now!<main><h1>Night</h1><p>{story}</main><p>Related stories"
    assert extract(page) == f"# Night\n\n{story.strip()}"
    assert "Subscribe" in extract(page.replace(story, "Short."))
    two = f"<article>{story}</article><p>Advert<article>{story}</article>"
    assert "Advert" not in extract(two)
    assert extract(two).count("stormy") == 20


def test_a_base_that_is_too_long_costs_nothing_and_links_begin_at_its_root() -> None:
    """Links of a page with a base of a megabyte would each take it apart anew, for half an hour in all."""
    links = "<a href='b'>c</a>"
    for base in (f"https://other.example/{'a/' * 1000}", f"https://{'x' * 2000}/"):
        text = extract(f"<base href='{base}'>{links}")
        assert text == ("[c](https://other.example/b)" if "other" in base else "c")
    assert extract_page_text(links, f"https://other.example/{'a/' * 1000}").text == "[c](https://other.example/b)"


def test_an_entity_of_thousands_of_digits_is_one_strange_character() -> None:
    assert extract(f"<p title='&#{'1' * 5000};'>a&#{'1' * 5000};b&#x{'f' * 5000}z&#65;") == "a\ufffdb\ufffdzA"


@pytest.mark.parametrize(
    ("href", "shown"),
    [
        ("/a", "[text](https://example.org/a)"),
        ("//other.example/b", "[text](https://other.example/b)"),
        ("#part", "text"),
        ("", "text"),
        ("javascript:alert(1)", "text"),
        ("mailto:a@example.org", "text"),
        ("data:text/html,x", "text"),
        ("http://[bad", "text"),
        ("/" + "x" * 400, "text"),
    ],
)
def test_links_are_kept_when_they_lead_to_the_web(href: str, shown: str) -> None:
    assert extract(f"<p><a href='{href}'>text</a></p>") == shown


def test_links_around_blocks_and_in_each_other_stay_readable() -> None:
    assert extract("<a href=/c><h3>Card</h3><p>more</p></a>") == "[Card more](https://example.org/c)"
    assert extract("<a href=/1>one <a href=/2>two</a>") == ("[one](https://example.org/1)[two](https://example.org/2)")
    assert extract("<a href=/1></a>x") == "x"
    assert extract("<base href='https://cdn.example/x/'><a href=y>z</a>") == "[z](https://cdn.example/x/y)"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a<b", "a"),
        ("a < b", "a < b"),
        ("<", "<"),
        ("<p", ""),
        ("<p class='x", ""),
        ("x<!-- open", "x"),
        ("x<script>open", "x"),
        ("</p></p>x", "x"),
        ("<b><i>x</b>y</i>", "xy"),
        ("<P>x</P >", "x"),
        ("<p/>x<br/>y", "x\ny"),
        ("&lt;b&gt; &#65; &unknown; &amp", "<b> A &unknown; &"),
        ("a\0b", "ab"),
        ("<p =x a=>y", "y"),
    ],
)
def test_broken_pages_are_read_as_far_as_they_go(html: str, text: str) -> None:
    assert extract(html) == text


def test_tags_have_lower_case_names_and_the_first_of_equal_attributes() -> None:
    assert list(parse_html("<A HREF='x' href=y Checked data-a=\"1&amp;2\">t</A>")) == [
        HtmlTag("a", attributes={"href": "x", "checked": "", "data-a": "1&2"}),
        "t",
        HtmlTag("a", closes=True),
    ]


PIECES = [
    "<",
    ">",
    "</",
    "<!--",
    "-->",
    "<p>",
    "</p>",
    "<a href=x>",
    "</a>",
    "<main>",
    "</main>",
    "<li>",
    "<td>",
    "'",
    '"',
    "=",
    " ",
    "x",
    "&amp;",
    "<script>",
    "</script>",
    "<title>",
    "<div hidden>",
    "</div>",
    "<pre>",
    "\n",
    "<br/>",
    "<a b='",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60))
def test_any_page_has_a_text(html: str) -> None:
    page = extract_page_text(html, URL)
    assert "\n\n\n" not in page.text


@pytest.mark.parametrize(
    "piece",
    [
        "<a ",
        "<a b='",
        "<a b=\"'",
        "<a =",
        "<!--",
        "</",
        "<div>",
        "<div></x>",
        "<b><p>",
        "<a href=x>y",
        "<li>",
        "&amp",
        "<td>",
    ],
)
def test_reading_takes_as_many_steps_more_as_a_page_is_longer(piece: str) -> None:
    """Counted in calls of functions, since clocks lie on a busy machine."""
    short, long = (count_calls(piece * number) for number in (1000, 4000))
    assert long <= 4 * short + 200


def count_calls(html: str) -> int:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        extract_page_text(html, URL)
    finally:
        sys.setprofile(None)
    return calls
