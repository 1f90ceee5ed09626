"""Reading star-rated reviews: formats, encodings, damage, and that every rejected row is named with its line."""

import gzip
import json
import os
import random
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dynaround.corpus import sources
from dynaround.corpus.reviews import (
    RatedSentence,
    ReadSummary,
    Rejected,
    RejectsFile,
    Review,
    read_rated_sentences,
    read_reviews,
)
from dynaround.corpus.seen import SeenIds
from dynaround.errors import BadInput, NotFound


def read(spec: str, **options: Any) -> tuple[list[Review], list[Rejected], ReadSummary]:
    rejects: list[Rejected] = []
    summary = ReadSummary()
    reviews = list(read_reviews(spec, on_reject=rejects.append, summary=summary, **options))
    assert (summary.loaded, summary.rejected) == (len(reviews), len(rejects))
    assert summary.rows_read == len(reviews) + len(rejects)
    return reviews, rejects, summary


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def json_lines(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def review_lines(count: int) -> str:
    return json_lines(*({"review_id": f"r{n}", "rating": 1 + n % 5, "text": f"Text {n}."} for n in range(count)))


ING_01 = (
    '{"review_id":"rA","stars":1.0,"text":"Cold soup."}\r\n\r\n'
    '{"review_id":"rB","stars":5.0,"text":"She said “go” and we went."}\r\n'
    '{"review_id":"rC","stars":3.0,"text":"It was ok'
)


def test_ing_01_crlf_blank_lines_and_a_cut_last_line(tmp_path: Path) -> None:
    path = written(tmp_path / "yelp.json", ING_01)
    reviews, rejects, summary = read(f"yelp:{path}")
    assert reviews == [("rA", 1, "Cold soup.", 1), ("rB", 5, "She said “go” and we went.", 3)]
    assert rejects == [(4, "malformed JSON")]
    assert summary.blank_lines == 1


def test_ing_01_the_locale_does_not_matter(tmp_path: Path) -> None:
    path = written(tmp_path / "yelp.json", ING_01)
    program = (
        "import sys; from dynaround.corpus.reviews import read_reviews\n"
        f"print(ascii([review.text for review in read_reviews({f'yelp:{path}'!r}, on_reject=lambda r: None)]))"
    )
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert r"She said \u201cgo\u201d and we went." in done.stdout


def test_ing_03_quotation_marks_are_nothing_special_in_tsv(tmp_path: Path) -> None:
    content = (
        'star_rating\treview_id\treview_body\n5\tA1\tSolid 5" tablet stand\n'
        '1\tA2\t"Broken on arrival\n4\tA3\tWorks fine\n2\tA4\tScratched\n'
    )
    reviews, rejects, _ = read(f"tsv:{written(tmp_path / 'amazon.tsv', content)}")
    assert [review.review_id for review in reviews] == ["A1", "A2", "A3", "A4"]
    assert reviews[1].text == '"Broken on arrival'
    assert rejects == []


def test_ing_03_quoted_line_breaks_and_doubled_quotes_in_csv(tmp_path: Path) -> None:
    content = 'stars,review_id,text\n2,B1,"Line one,\nline two with ""quotes""."\n5,B2,Great\n'
    reviews, rejects, _ = read(f"csv:{written(tmp_path / 'yelp.csv', content)}")
    assert reviews == [("B1", 2, 'Line one,\nline two with "quotes".', 2), ("B2", 5, "Great", 4)]
    assert rejects == []


@pytest.mark.parametrize(("kind", "comma"), [("csv", ","), ("tsv", "\t")])
def test_ing_04_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path, kind: str, comma: str) -> None:
    content = "\ufeffreview_id,stars,text\nrA,1,Cold soup.\n".replace(",", comma)
    reviews, _, _ = read(f"{kind}:{written(tmp_path / 'a', content)}")
    assert reviews == [("rA", 1, "Cold soup.", 2)]


def test_ing_04_a_field_beyond_the_usual_limit_loads(tmp_path: Path) -> None:
    path = written(tmp_path / "b.csv", "review_id,stars,text\nrA,1," + "a" * 131073 + "\nrB,2,Fine\n")
    reviews, rejects, _ = read(f"csv:{path}")
    assert [len(review.text) for review in reviews] == [131073, 4]
    assert rejects == []


def test_ing_05_nul_and_half_surrogates_are_rejected_with_line_and_reason(tmp_path: Path) -> None:
    content = (
        '{"review_id":"r1","stars":5,"text":"Good\\u0000food"}\n'
        '{"review_id":"r2","stars":4,"text":"Yum \\ud83d tacos"}\n'
        '{"review_id":"r3","stars":5,"text":"Best \\ud83c\\udf2e ever."}\n'
    )
    reviews, rejects, _ = read(f"yelp:{written(tmp_path / 'yelp.json', content)}")
    assert reviews == [("r3", 5, "Best 🌮 ever.", 3)] and len(reviews[0].text) == 12
    assert [line for line, _ in rejects] == [1, 2]
    assert "NUL" in rejects[0].reason and "surrogate" in rejects[1].reason
    rejects[1].reason.encode()


def test_both_generations_of_amazon_lines_get_a_stable_id_without_the_reviewer_in_it(tmp_path: Path) -> None:
    older = {"reviewerID": "A2SU", "asin": "000", "overall": 5.0, "reviewText": "Fits.", "unixReviewTime": 1252800000}
    newer = {
        "rating": 2.0,
        "title": "Meh",
        "text": "Broke.",
        "user_id": "AGKH",
        "asin": "B01",
        "timestamp": 1588687728923,
    }
    path = written(tmp_path / "amazon.jsonl", json_lines(older, newer, older, newer | {"user_id": None}))
    reviews, rejects, _ = read(f"amazon:{path}")
    assert [(review.rating, review.text) for review in reviews] == [(5, "Fits."), (2, "Broke.")]
    # printf 'A2SU\t000\t1252800000' | sha256sum | cut -c1-22
    assert reviews[0].review_id == "9dbaae67d35002ed5c2480"
    assert [(line, reason.split()[0]) for line, reason in rejects] == [(3, "the"), (4, "there")]
    assert "user_id" in rejects[1].reason


def test_tables_recognise_usual_names_and_number_rows_without_an_id(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "Score,Body\n5,Good\n9,Bad scale\n\n1,Bad\n")
    reviews, rejects, summary = read(f"csv:{path}")
    # printf Good | sha256sum | cut -c1-10
    assert reviews == [("row-1-c939327ca1", 5, "Good", 2), ("row-3-" + reviews[1].review_id[6:], 1, "Bad", 5)]
    assert rejects == [(3, "the rating is '9', not one of 1 to 5")]
    assert summary.blank_lines == 1


def test_rows_of_two_files_without_ids_are_different_reviews(tmp_path: Path) -> None:
    ids = []
    for name, text in (("a.csv", "Good"), ("b.csv", "Other")):
        reviews, _, _ = read(f"csv:{written(tmp_path / name, f',stars,text{chr(10)}17,5,{text}{chr(10)}')}")
        ids.append(reviews[0].review_id)
    assert ids[0] != ids[1] and all(review_id.startswith("row-1-") for review_id in ids)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_field_mapping_names_other_columns(tmp_path: Path, kind: str) -> None:
    content = "key,points,opinion\nx,4,Good\n" if kind == "csv" else '{"key": "x", "points": 4, "opinion": "Good"}\n'
    fields = {"review_id": "key", "rating": "points", "text": "opinion"}
    reviews, _, _ = read(f"{kind}:{written(tmp_path / 'a', content)}", fields=fields)
    assert reviews == [("x", 4, "Good", 2 if kind == "csv" else 1)]


@pytest.mark.parametrize("value", [1, 5, 3.0, "4", "4.0", " 2 "])
def test_ratings_from_one_to_five_in_any_writing(tmp_path: Path, value: object) -> None:
    path = written(tmp_path / "a.jsonl", json_lines({"review_id": "r", "rating": value, "text": "Good"}))
    reviews, _, _ = read(f"jsonl:{path}")
    assert reviews[0].rating == int(float(str(value)))


@pytest.mark.parametrize("value", [0, 6, 4.5, float("nan"), True, None, "", "five", "٥", "1e0", [5], 10**400])
def test_other_ratings_are_rejected_with_the_value(tmp_path: Path, value: object) -> None:
    good = {"review_id": "s", "rating": 1, "text": "Good"}
    path = written(tmp_path / "a.jsonl", json_lines({"review_id": "r", "rating": value, "text": "Good"}, good))
    reviews, rejects, _ = read(f"jsonl:{path}")
    assert [review.review_id for review in reviews] == ["s"]
    assert rejects[0].line == 1 and rejects[0].reason.startswith("the rating is")


def test_a_task_without_ratings_reads_reviews_without_them(tmp_path: Path) -> None:
    content = '{"review_id": "a", "text": "Good"}\n{"review_id": "b", "text": "Bad", "rating": 2}\n'
    reviews, rejects, _ = read(f"jsonl:{written(tmp_path / 'a', content)}", needs_rating=False)
    assert [review.rating for review in reviews] == [None, 2]
    path = written(tmp_path / "b.csv", "id,text\na,Good\n")
    table, _, _ = read(f"csv:{path}", needs_rating=False)
    assert table == [("a", None, "Good", 2)]
    assert rejects == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'["r1", 5, "Good"]', "not a JSON object"),
        (b'{"review_id": "r", "rating": 5, "text": "  "}', "empty"),
        (b'{"review_id": "r", "rating": 5, "text": 7}', "not a string"),
        (b'{"review_id": "", "rating": 5, "text": "Good"}', "review_id is empty"),
        (b'{"review_id": 1.5, "rating": 5, "text": "Good"}', "the review_id is 1.5"),
        (b'{"review_id": "r", "text": "Good"}', "has no key 'rating'"),
        (b'{"review_id": "caf\xe9", "rating": 5, "text": "Good"}', "byte 19 of line 1 is not UTF-8 (0xe9)"),
        (b"[" * 200_000, "malformed JSON"),
        (b'{"rating": ' + b"9" * 10_000 + b"}", "malformed JSON"),
        (b" " * (sources.MAX_LINE_BYTES + 5) + b"x" * 100, "longer than 8,388,608 bytes"),
        (b'{"review_id": "first", "rating": 5, "text": "Good"}\n' * 2, "occurs earlier"),
    ],
)
def test_a_bad_line_is_rejected_and_reading_goes_on(tmp_path: Path, line: bytes, reason: str) -> None:
    last = b'\n{"review_id": "last", "rating": 5, "text": " Kept  as it is \\n"}'
    reviews, rejects, _ = read(f"jsonl:{written(tmp_path / 'a.jsonl', line + last)}")
    assert reviews[-1][:3] == ("last", 5, " Kept  as it is \n")
    assert len(rejects) == 1 and reason in rejects[0].reason


def test_bytes_that_are_not_utf8_reject_only_the_csv_row_they_stand_in(tmp_path: Path) -> None:
    content = b'id,stars,text\na,1,"Caf\xe9\ntwo lines"\nb,2,Fine\n'
    reviews, rejects, _ = read(f"csv:{written(tmp_path / 'a.csv', content)}")
    assert reviews == [("b", 2, "Fine", 4)]
    assert rejects == [(2, "byte 9 of line 2 is not UTF-8 (0xe9)")]


@pytest.mark.parametrize("row", ['a,1,"Never closed', 'a,1,"Closed" too soon', "a,1", "a,1,Good,more"])
def test_a_malformed_csv_row_costs_no_other_row(tmp_path: Path, row: str) -> None:
    content = f'id,stars,text\n{row}\nb,2,Fine\nc,3,"Two\nlines"\n'
    reviews, rejects, _ = read(f"csv:{written(tmp_path / 'a.csv', content)}")
    assert reviews == [("b", 2, "Fine", 3), ("c", 3, "Two\nlines", 4)]
    assert [line for line, _ in rejects] == [2]


def test_a_quotation_mark_that_swallows_more_than_a_field_may_hold_costs_its_row_alone(tmp_path: Path) -> None:
    rows = "".join(f"r{number},5,{'long ' * 40}\n" for number in range(6000))
    path = written(tmp_path / "a.csv", 'id,stars,text\nq,1,"open\n' + rows)
    reviews, rejects, _ = read(f"csv:{path}")
    assert len(reviews) == 6000
    assert rejects[0].line == 2 and "field limit (1048576)" in rejects[0].reason


@pytest.mark.parametrize(
    ("spec", "content", "found"),
    [
        ("reviews.csv", None, "KIND:PATH"),
        ("xml:{}", "x", "'xml', which is none of yelp, amazon"),
        ("csv:{}", "", "is empty"),
        ("csv:{}", "\n\n", "blank lines only"),
        ("jsonl:{}", "\n \n", "blank lines only"),
        ("csv:{}", "id,stars,text\n", "no rows"),
        ("csv:{}", "id,stars,text,text\n1,2,3,4\n", "two columns 'text'"),
        ("csv:{}", "id,stars,opinion\na,1,Good\n", "only 'id', 'stars', 'opinion'; .*fields={'text': 'opinion'}"),
        ("csv:{}", "id,stars,opinion\na,1,Good\n", "give --field text=opinion "),
        ("csv:{}", "id,stars,my opinion\na,1,Good\n", "give --field 'text=my opinion' "),
        ("jsonl:{}", '{"id": "a", "rating": 1, "text": "b"}\n', "give --field 'review_id=name of the key' "),
        ("tsv:{}", "id,stars,text\na,1,Good\n", "only 'id,stars,text'"),
        ("jsonl:{}", '{"id": "a", "stars": 1}\n', "no line of .* has the key 'text', the first has 'id', 'stars'"),
        ("jsonl:{}", "\xff\xfe{\x00}\x00", "UTF-16"),
        ("parquet:{}", "not parquet", "cannot be read as Parquet"),
    ],
)
def test_a_file_that_cannot_be_used_at_all_is_one_clear_sentence(
    tmp_path: Path, spec: str, content: str | None, found: str
) -> None:
    path = written(tmp_path / "file", (content or "").encode("latin-1"))
    with pytest.raises(BadInput, match=found) as error:
        read(spec.format(path))
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        read_reviews(f"csv:{tmp_path / 'nowhere.csv'}", on_reject=print)
    with pytest.raises(BadInput, match="is a folder"):
        read_reviews(f"csv:{tmp_path}", on_reject=print)


@pytest.mark.parametrize("fields", [{"body": "text"}, {"text": "body"}])
def test_a_field_mapping_that_fits_nothing_is_refused(tmp_path: Path, fields: dict[str, str]) -> None:
    path = written(tmp_path / "a.csv", "id,stars,text\na,1,Good\n")
    with pytest.raises(BadInput, match=r"--field\b.*'body'|'body'.* correct --field text=COLUMN"):
        read(f"csv:{path}", fields=fields)


def test_gzip_files_are_read_alike(tmp_path: Path) -> None:
    packed = written(tmp_path / "a.jsonl.gz", gzip.compress(review_lines(20).encode()))
    plain = written(tmp_path / "a.jsonl", review_lines(20))
    assert read(f"jsonl:{packed}")[0] == read(f"jsonl:{plain}")[0]


def test_a_gzip_file_that_is_cut_short_gives_its_rows_and_then_says_so(tmp_path: Path) -> None:
    noise = random.Random(7)
    lines = [{"review_id": f"r{n}", "rating": 5, "text": noise.randbytes(90).hex()} for n in range(3000)]
    packed = gzip.compress(json_lines(*lines).encode())
    path = written(tmp_path / "a.jsonl.gz", packed[: len(packed) // 2])
    reviews = []
    with pytest.raises(BadInput, match="cut short or damaged after line") as error:
        for review in read_reviews(f"jsonl:{path}", on_reject=print):
            reviews.append(review)
    assert 1000 < len(reviews) < 2000
    assert f"after line {len(reviews)} " in str(error.value)


def test_a_gzip_file_that_grows_out_of_proportion_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(70):
            stream.write(b" " * 2**20 + b"\n")
    with pytest.raises(BadInput, match="grows beyond 67,108,864 bytes"):
        read(f"jsonl:{path}")


def test_a_plain_file_named_gz_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no gzip file"):
        read(f"jsonl:{written(tmp_path / 'a.jsonl.gz', review_lines(1))}")


def test_parquet_gives_the_same_reviews_as_csv(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "review_id": ["a", "b", None, "a"],
        "stars": [1.0, 5.0, 3.0, 2.0],
        "text": ["Bad\nsoup", "Good", "x", "y"],
    }
    parquet.write_table(pyarrow.table(columns | {"vector": [[1.0], [2.0], [3.0], [4.0]]}), tmp_path / "a.parquet")
    reviews, rejects, _ = read(f"parquet:{tmp_path / 'a.parquet'}")
    assert reviews == [("a", 1, "Bad\nsoup", 1), ("b", 5, "Good", 2)]
    assert [line for line, _ in rejects] == [3, 4]


def test_parquet_without_pyarrow_names_the_command(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", "x")
    program = (
        "import sys; sys.modules['pyarrow'] = None\nfrom dynaround.corpus.reviews import read_reviews\n"
        f"from dynaround.errors import NotInstalled\ntry: list(read_reviews({f'parquet:{path}'!r}, on_reject=print))\n"
        "except NotInstalled as problem: print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'dynaround[parquet]'" in done.stdout


def test_reading_goes_by_in_constant_memory(tmp_path: Path) -> None:
    peaks = []
    for count in (2_000, 20_000):
        path = written(tmp_path / f"{count}.jsonl", review_lines(count))
        tracemalloc.start()
        read_count = sum(1 for _ in read_rated_sentences(f"jsonl:{path}", on_reject=print))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert read_count == count
    assert peaks[1] < 1.2 * peaks[0] + 100_000


def test_seen_ids_keeps_apart_what_differs() -> None:
    seen = SeenIds()
    names = [f"review {number}" for number in range(100_000)]
    assert all(seen.add(name) for name in names)
    assert not any(seen.add(name) for name in names)
    assert len(seen) == 100_000


def test_rated_sentences_are_slices_of_their_reviews(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'id,stars,text\na,1," Dr. Ito left.\nWe too! "\nb,5,👍🏽 Ok. Ok.\n')
    sentences = list(read_rated_sentences(f"csv:{path}", on_reject=print))
    assert sentences == [
        ("a", 1, 1, 14, "Dr. Ito left."),
        ("a", 1, 15, 22, "We too!"),
        ("b", 5, 0, 6, "👍🏽 Ok."),
        ("b", 5, 7, 10, "Ok."),
    ]


def test_released_sentences_with_offsets_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    good = {"sentence": "Good\nfood", "indices_into_review_text": [4, 13], "review_rating": 5, "review_id": "r"}
    bad = [good | {"indices_into_review_text": span} for span in ([4, 12], [-1, 8], [4], None, [4.0, 13.0])]
    rejects: list[Rejected] = []
    path = written(tmp_path / "a.jsonl", json_lines(good, *bad))
    sentences = list(read_rated_sentences(f"dynasent:{path}", on_reject=rejects.append))
    assert sentences == [RatedSentence("r", 5, 4, 13, "Good\nfood")]
    assert [line for line, _ in rejects] == [2, 3, 4, 5, 6]


def test_the_rejects_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = written(tmp_path / "rejects.jsonl", "of an earlier run")
    with pytest.raises(BadInput), RejectsFile(path) as rejects:
        rejects(Rejected(1, "x"))
        raise BadInput("the corpus is damaged")
    assert path.read_text() == "of an earlier run"
    with RejectsFile(path) as rejects:
        rejects(Rejected(4, "malformed JSON"))
    assert path.read_text() == '{"line": 4, "reason": "malformed JSON"}\n'
    with RejectsFile(path) as rejects:
        rejects(Rejected(4, "x"), "csv:a.csv")
    assert path.read_text() == '{"corpus": "csv:a.csv", "line": 4, "reason": "x"}\n'
    with RejectsFile(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_real_yelp_csv(shared_data: Path) -> None:
    reviews, rejects, summary = read(f"csv:{shared_data / 'reviews' / 'yelp_1_and_5_star.csv'}")
    assert Counter(review.rating for review in reviews) == {1: 749, 5: 3337}
    assert rejects == [] and summary.blank_lines == 0
    assert max(len(review.text) for review in reviews) == 4986


def test_the_real_yelp_json_lines(shared_data: Path) -> None:
    reviews, rejects, _ = read(f"yelp:{shared_data / 'reviews' / 'yelp_academic_sample.jsonl'}")
    assert Counter(review.rating for review in reviews) == {1: 112, 2: 74, 3: 125, 4: 228, 5: 460}
    assert rejects == []


def test_the_real_amazon_tsv(shared_data: Path) -> None:
    """79 of its 3,150 rows have a single blank for a text."""
    reviews, rejects, _ = read(f"tsv:{shared_data / 'reviews' / 'amazon_alexa.tsv'}")
    assert (len(reviews), len(rejects)) == (3071, 79)
    assert {reason for _, reason in rejects} == {"the text is empty"}
    assert reviews[0] == Review("row-1-" + reviews[0].review_id[6:], 5, "Love my Echo!", 2)


def test_the_published_round_1_gives_its_rated_sentences(shared_data: Path) -> None:
    spec = f"dynasent:{shared_data / 'dynasent' / 'dynasent-v1.1-round01-yelp-dev.jsonl'}"
    sentences = list(read_rated_sentences(spec, on_reject=pytest.fail))
    assert Counter(sentence.rating for sentence in sentences) == {1: 1800, 5: 1800}
    assert all(sentence.end - sentence.start == len(sentence.text) for sentence in sentences)


def test_an_authored_release_has_no_rated_sentences(shared_data: Path) -> None:
    spec = f"dynasent:{shared_data / 'dynasent' / 'dynasent-v1.1-round02-dynabench-dev.jsonl'}"
    with pytest.raises(BadInput, match="'indices_into_review_text'.* harvested"):
        list(read_rated_sentences(spec, on_reject=lambda rejected: None))
