"""The parts of a report, each by itself: pieces of a prompt, standings, drawings, words."""

from __future__ import annotations

import json
import re
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.audit.model import JudgedPassage, Verdict
from bijotel.dimensions.read import DIMENSIONS
from bijotel.dimensions.series import Selection, Series, _Kept
from bijotel.entries import Chain
from bijotel.findings import Finding, Report
from bijotel.provenance import RecordedProvenance, RecordedSource
from bijotel.regression import detect
from bijotel.regression.model import Point
from bijotel.report.assets import THEME, content_policy, read_assets
from bijotel.report.coverage import not_covered, verdict
from bijotel.report.model import Row
from bijotel.report.page import data_block, numbered, visible
from bijotel.report.passages import MOST_PASSAGES, MOST_PROMPT, count_words, pieces, sources
from bijotel.report.plots import draw_plot
from bijotel.report.reading import ChainReading
from bijotel.report.text import cut, duration, moment, one_line, shown
from bijotel.report.timeline import BARS, HEIGHT, draw_timeline

# --- a prompt in pieces --------------------------------------------------------------------------


def _found(*regions):
    return Verdict("included", regions=regions)


def test_a_prompt_is_cut_where_regions_begin_and_end():
    """Overlapping regions share a piece; what no passage covers has no number."""
    verdicts = [_found((2, 6)), _found((4, 8)), Verdict("absent"), _found((0, 2))]
    assert pieces("abcdefghij", verdicts) == [
        ["ab", [4]],
        ["cd", [1]],
        ["ef", [1, 2]],
        ["gh", [2]],
        ["ij", []],
    ]
    assert pieces("", verdicts) == []
    assert pieces("abc", []) == [["abc", []]]


@given(
    st.text(max_size=30),
    st.lists(st.lists(st.tuples(st.integers(0, 35), st.integers(0, 35)), max_size=4), max_size=4),
)
def test_pieces_are_the_prompt_and_know_their_passages(text, regions):
    """Joined they are the text; each character has the numbers of just those that cover it."""
    found = pieces(text, [_found(*each) for each in regions])
    assert "".join(piece for piece, _ in found) == text
    covered = [numbers for piece, numbers in found for _ in piece]
    for place, numbers in enumerate(covered):
        expected = [
            number
            for number, each in enumerate(regions, 1)
            if any(start <= place < end for start, end in each)
        ]
        assert numbers == expected


def test_a_huge_prompt_is_cut():
    """What is shown is bounded, wherever the regions lie."""
    found = pieces("x" * (MOST_PROMPT + 5), [_found((MOST_PROMPT - 1, MOST_PROMPT + 3))])
    assert [(len(text), numbers) for text, numbers in found] == [(MOST_PROMPT - 1, []), (1, [1])]


def _passage(identifier="a#0", **changes):
    values = {"text": "some text", "score": 0.25, "score_kind": "score", "rank": 2}
    verdict = Verdict("included")
    return JudgedPassage(
        identifier, **{**values, **changes}, source_span_id="", verdict=verdict, call=None
    )


def test_a_source_says_what_is_recorded_of_it():
    """The recorded descriptor is found by document and chunk."""
    recorded = RecordedProvenance(
        sources=(RecordedSource("a", 0, "s3://a", "qdrant", retrieved_at="t", metadata={"k": 1}),)
    )
    verdict = Verdict("partial", containment=0.614, position=0, covered_by=2)
    (one,) = sources([_passage()], [verdict], recorded)
    assert one == {
        "number": 1,
        "id": "a#0",
        "word": "partial",
        "how": "61% of its words, place 1 in the prompt, within passage 3",
        "uri": "s3://a",
        "retriever": "qdrant",
        "retrieved": "t",
        "metadata": '{"k": 1}',
        "score": "0.25",
        "rank": 2,
        "text": "some text",
        "placed": False,
    }


def test_a_source_of_which_little_is_known_says_so():
    """No text, no score, a distance, a reason; and never more than a page can hold."""
    passages = [_passage("b#1", text=None, score=None), _passage("c", score_kind="distance")]
    verdicts = [Verdict("unknown", reason="no-content"), Verdict("included", "normalized", 1.0)]
    first, second = sources(passages, verdicts, None)
    assert (first["word"], first["how"], first["text"], first["score"]) == (
        "unknown",
        "no-content",
        None,
        "",
    )
    assert (second["how"], second["score"]) == ("in another spelling", "0.25 (distance)")
    many = sources([_passage()] * 500, [Verdict("absent")] * 500, None)
    assert len(many) == MOST_PASSAGES


def test_passages_are_counted_by_word():
    """Absent is "dropped" to a reader; a word of which there is none is left out."""
    verdicts = [Verdict("absent"), Verdict("included"), Verdict("absent")]
    assert count_words(verdicts) == {"included": 1, "dropped": 2}


# --- standings -----------------------------------------------------------------------------------


def _standing(seq, *findings):
    report = Report((), findings)
    reading = ChainReading(None, Chain(bytes(16), "", None), report)
    return reading.standing(seq)


def _finding(code, first, last=None):
    return Finding(code, "what", seq=first, last_seq=first if last is None else last)


@pytest.mark.parametrize(
    ("seq", "proof", "codes"),
    [
        (4, "verified", []),
        (5, "false", ["tag-mismatch"]),
        (6, "verified", []),
        (10, "not verified", ["key-unknown"]),
        (15, "false", ["key-unknown", "link-mismatch"]),
        (19, "not verified", ["key-unknown"]),
        (20, "verified", []),
    ],
)
def test_a_finding_stands_with_the_entries_it_names(seq, proof, codes):
    """Runs cover their entries; what could not be checked is not false."""
    standing = _standing(
        seq,
        _finding("link-mismatch", 15),
        _finding("key-unknown", 10, 19),
        _finding("tag-mismatch", 5),
        Finding("head-mismatch", "no entry"),
    )
    assert (standing.proof, [each.code for each in standing.findings]) == (proof, codes)


def test_without_the_right_key_no_entry_is_verified():
    """Neither without a key nor with that of another chain."""
    assert _standing(7, _finding("wrong-key", 0)).proof == "not verified"
    assert ChainReading(None, Chain(bytes(16), "", None), None).standing(7).proof == "not verified"


def test_the_verdict_in_a_sentence():
    """One word for each way in which a verification ends."""
    checked = {"entries": 5}
    assert verdict(Report((), (), checked=checked)) == (
        "VERIFIED",
        "good",
        "Every one of 5 entries holds. Nothing was found.",
    )
    assert verdict(Report((), (_finding("tag-mismatch", 1),), checked=checked))[:2] == (
        "DOES NOT VERIFY",
        "bad",
    )
    assert verdict(Report((), (_finding("key-unknown", 1),), checked=checked))[:2] == (
        "NOT CHECKED IN FULL",
        "doubtful",
    )
    assert verdict(None)[0] == "NOT VERIFIED"
    lines = list(not_covered(Report((), (), not_checked=("completeness of the tail",)), 2))
    assert lines[2].startswith("Completeness of the tail: entries cut off at the end")
    assert lines[3] == "2 rows that cannot be read as an entry."


# --- drawings ------------------------------------------------------------------------------------


def _row(seq, start, proof="verified"):
    return Row(seq, start, "", "", proof, "ok")


def test_the_timeline_counts_every_call_once():
    """Bars hold all calls; the highest fills the height; a gap stands at its time."""
    second = 10**9
    rows = [_row(n, 1000 * second + n * second) for n in range(160)]
    rows[3] = _row(3, 1003 * second, "false")
    drawing = draw_timeline(rows, [(1079 * second, "gap: 7"), (1, "long before")])
    counts = [
        int(n) for bar in drawing.bars for n in re.findall(r"(\d+) (?:verified|false)", bar.label)
    ]
    assert sum(counts) == 160
    assert len(drawing.bars) == BARS
    assert drawing.highest == 2
    assert max(height for bar in drawing.bars for _, height, _ in bar.parts) == HEIGHT
    styles = [style for bar in drawing.bars for _, _, style in bar.parts]
    assert styles.count("bad") == 1
    ((place, words),) = drawing.marks
    assert words == "gap: 7"
    assert 490 < place < 500
    assert drawing.summary.startswith("160 sealed calls from 1970-01-01T00:16:40.000Z to ")


def test_a_timeline_of_one_moment_or_of_none():
    """A single call is one bar; calls without a time are none."""
    assert len(draw_timeline([_row(1, 5), _row(2, 5)], []).bars) == 1
    assert draw_timeline([_row(1, 0)], []) is None


def test_a_plot_draws_what_was_found():
    """The line stays within the drawing; a shift and an outlier are said in words too."""
    values = [8.0] * 30 + [4.0] * 30 + [90.0]
    kept = deque(_Kept(Point(10 + n, value), False) for n, value in enumerate(values))
    series = Series(DIMENSIONS["rag_source_count"], "", kept, len(values), len(values))
    plot = draw_plot(series, series.judge(Selection()))
    assert (plot.verdict, plot.style, plot.low, plot.high) == ("anomaly", "bad", "4", "90")
    points = [tuple(map(float, point.split(","))) for point in plot.line.split()]
    assert points[0][0] == 0
    assert points[-1] == (460, 0)
    assert plot.outliers == ((460, 0, "entry 70: 90"),)
    assert "the level moved with entry 40: 8 to 4" in " ".join(plot.words)
    assert [words for _, words in plot.shifts] == ["entry 40: 8 to 4"]
    assert draw_plot(Series(DIMENSIONS["cost"], "", deque()), detect([])) is None


# --- text and markup -----------------------------------------------------------------------------


def test_times_and_texts():
    """Nothing is nothing; a time far away is still a time; long text says how long it is."""
    assert moment(1_767_225_600_123_456_789) == "2026-01-01T00:00:00.123Z"
    assert (moment(None), moment(0)) == ("", "")
    assert moment(2**63 - 1) == "2262-04-11T23:47:16.854Z"
    assert moment(1e300) == "1e+300 ns"
    assert (duration(1, 1_500_000_001), duration(None, 5), duration(5, 1)) == ("1.500 s", "", "")
    assert duration(0, 90 * 10**9) == "90 s"
    assert cut("abcdef", 3) == "abc ... (6 characters)"
    assert one_line("a\n b\tc", 10) == "a b c"
    assert one_line("x" * 50, 10) == "xxxxxxx..."
    assert (shown(None), shown("ü"), shown([1, "ü"])) == ("", "ü", '[1, "ü"]')


def test_markup_in_text_is_text():
    """Tags are escaped; what steers the eye is shown by number; letters stay letters."""
    assert visible("<b> & 'x'") == "&lt;b&gt; &amp; &#39;x&#39;"
    assert visible("a\u202eb\x07") == (
        'a<span class="character">U+202E</span>b<span class="character">U+0007</span>'
    )
    assert visible("naïve 日本 \u200d\n") == "naïve 日本 \u200d\n"
    assert numbered("<\u2066>") == "<U+2066>"


@given(st.text())
def test_no_text_can_end_its_script_element(text):
    """JSON for the script has no character of markup, and is the same JSON."""
    block = str(data_block(json.dumps(text, ensure_ascii=False)))
    assert not set("<>&") & set(block)
    assert json.loads(block) == text


# --- style and policy ----------------------------------------------------------------------------


def _palettes():
    """The colours of both modes, by name."""
    light, _, rest = read_assets(THEME).partition("@media screen and (prefers-color-scheme: dark)")
    pattern = r"--([a-z-]+): #([0-9a-f]{6})"
    first = dict(re.findall(pattern, light))
    return first, {**first, **dict(re.findall(pattern, rest))}


def _luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    (text, ground)
    for text, grounds in {
        "text": ("page", "panel"),
        "muted": ("page", "panel"),
        "accent": ("page", "panel"),
        "page": ("accent",),
        "good-text": ("good", "page"),
        "doubtful-text": ("doubtful", "page"),
        "bad-text": ("bad", "page"),
        "plain-text": ("plain", "page"),
    }.items()
    for ground in grounds
]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_can_be_read_on_its_ground(mode, text, ground):
    """Contrast of at least 4.5 to 1 (WCAG 2.2, 1.4.3) for every pair that occurs."""
    colours = _palettes()[mode]
    assert _contrast(colours[text], colours[ground]) >= 4.5


def test_no_colour_stands_outside_the_theme():
    """All colours are variables, so that the test above sees every one."""
    for name in ("report.css",):
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl", read_assets(name))


def test_the_policy_names_what_may_run():
    """Hashes of the very texts, and nothing else."""
    policy = content_policy(["a"], ["b"])
    assert policy == (
        "default-src 'none'; script-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='; "
        "style-src 'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
