"""Splits: balanced dev and test, groups kept together, sizes refused with the reason, the best and the same plan."""

import random
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import pytest

from dynaround.errors import BadInput
from dynaround.splits import HELD_OUT, SPLITS, Candidate, Cell, plan_splits
from dynaround.text import folded, group_text

MODEL_LABELS = ("positive", "negative", "neutral")
SPT_01_POOL = [[50, 9, 12], [8, 60, 11], [7, 10, 40]]


def candidate(number, gold="positive", prediction="positive", groups=(), winning=4, rating=None, eligible=True):
    return Candidate(f"r1-{number:07d}", gold, prediction, winning, rating, eligible, tuple(groups))


def pool_of(counts):
    cells = [cell for cell in product(range(3), range(3)) for _ in range(counts[cell[0]][cell[1]])]
    return [candidate(number, MODEL_LABELS[g], MODEL_LABELS[p]) for number, (g, p) in enumerate(cells)]


def plan(pool, per_cell=None, seed=1, model_labels=MODEL_LABELS, **settings):
    return plan_splits(pool, model_labels=model_labels, per_cell=per_cell, seed=seed, **settings)


def random_pool(seed, reviews, sizes=(1, 2, 3), ratings=(1, 5), model_labels=MODEL_LABELS):
    draw = random.Random(seed)
    pool = []
    for review in range(reviews):
        rating = draw.choice(ratings)
        for _ in range(draw.choice(sizes)):
            groups = [f"review {review}"] + ([f"text {draw.randrange(3)}"] if draw.random() < 0.05 else [])
            gold = draw.choice([*model_labels, *model_labels, "mixed", None])
            winning = draw.choice([3, 4, 5])
            pool.append(candidate(len(pool), gold, draw.choice(model_labels), groups, winning, rating))
    return pool


def test_spt_01_three_per_cell_gives_27_27_153():
    pool = pool_of(SPT_01_POOL)
    made = plan(pool, per_cell=3)
    assert [made.count(split) for split in SPLITS] == [153, 27, 27, 0]
    train = [[made.cells_after["train"][Cell(gold, model)] for model in MODEL_LABELS] for gold in MODEL_LABELS]
    assert train == [[44, 3, 6], [2, 54, 5], [1, 4, 34]]
    dev = Counter((c.gold, c.prediction) for c in pool if made.split_of[c.key] == "dev")
    accuracy = sum(count for (gold, prediction), count in dev.items() if gold == prediction) / 27
    chance_agreement = 1 / 3
    assert set(dev.values()) == {3} and len(dev) == 9 and accuracy == pytest.approx(1 / 3)
    # Each label is a third of gold and of the predictions, so kappa is 0 and every F1 equals the accuracy.
    assert (accuracy - chance_agreement) / (1 - chance_agreement) == pytest.approx(0.0)


def test_spt_01_four_per_cell_is_refused_naming_cell_need_and_largest_size():
    with pytest.raises(BadInput) as refusal:
        plan(pool_of(SPT_01_POOL), per_cell=4)
    assert "cell gold=neutral, model=positive has 7, needs 8" in str(refusal.value)
    assert "largest possible 3" in str(refusal.value)


@pytest.mark.parametrize("per_cell", [None, 3])
def test_spt_01_an_absent_cell_is_refused_by_name(per_cell):
    counts = [*SPT_01_POOL[:2], [0, 10, 40]]
    with pytest.raises(BadInput, match="cell gold=neutral, model=positive is empty: it has 0, needs"):
        plan(pool_of(counts), per_cell=per_cell)


def test_spt_01_the_order_of_input_does_not_matter_and_the_seed_does():
    pool = pool_of(SPT_01_POOL)
    shuffled = random.Random(3).sample(pool, len(pool))
    assert plan(shuffled, per_cell=3) == plan(pool, per_cell=3)
    assert plan(pool, per_cell=3, seed=2).split_of != plan(pool, per_cell=3).split_of


def test_the_order_of_input_does_not_matter_for_tied_candidates_either():
    pool = random_pool(5, reviews=200)
    shuffled = [replace(c, groups=c.groups[::-1]) for c in random.Random(4).sample(pool, len(pool))]
    assert plan(shuffled) == plan(pool)


def test_spt_02_sentences_with_the_same_group_text_are_never_in_different_splits():
    sentences = {
        "s1": "The crust was soggy.",
        "s2": "The crust was soggy. ",
        "s3": "The crust  was\nsoggy.",
        "s4": "the crust was soggy.",
        "s5": "Parking is free.",
        "s6": "Parking is free!",
    }
    kept = list({folded(text): name for name, text in reversed(sentences.items())}.values())[::-1]
    assert kept == ["s1", "s4", "s5", "s6"]
    pool = [Candidate(name, "yes", "yes", 5, None, True, (f"text {group_text(sentences[name])}",)) for name in kept]
    for seed in range(20):
        made = plan(pool, per_cell=1, seed=seed, model_labels=("yes",))
        assert {made.split_of["s1"], made.split_of["s4"]} < {"dev", "test", "withheld"}
        for one, other in combinations(kept, 2):
            if group_text(sentences[one]) == group_text(sentences[other]):
                assert len({made.split_of[one], made.split_of[other]} - {"withheld"}) == 1
        assert made.withheld == 2 and made.count("train") == 0


def test_spt_02_sst_train_has_8544_rows_and_8534_folded_texts(shared_data):
    trees = (shared_data / "sst/train.txt").read_text(encoding="utf-8").splitlines()
    texts = [" ".join(re.findall(r"\([0-4] ([^()]+)\)", tree)) for tree in trees]
    assert len(texts) == 8544
    assert len({folded(text) for text in texts}) == 8534


def test_without_a_stated_size_single_sentences_fill_half_the_scarcest_cell():
    made = plan(pool_of([[50, 9, 12], [8, 60, 11], [7, 10, 140]]))
    assert made.per_cell == 3 and made.proven and made.withheld == 0


def test_without_a_stated_size_dev_and_test_keep_to_their_share():
    pool = pool_of([[20, 20, 20]] * 3)
    assert plan(pool).per_cell == 3  # 54 of 180 is 30 percent
    assert plan(pool, held_out_share=0.5).per_cell == 5
    assert plan(pool[1:]).per_cell == 2
    assert plan(pool, per_cell=10).per_cell == 10  # a stated size is not bound by the share


def test_a_pool_too_small_for_the_share_is_refused_with_the_way_out():
    with pytest.raises(BadInput, match=r"already more than 30% .* largest possible 1"):
        plan(pool_of([[2, 2, 2]] * 3))


def test_only_eligible_candidates_with_a_clear_ternary_gold_label_leave_train():
    barred = [
        candidate(100, winning=3),
        candidate(101, gold=None),
        candidate(102, gold="mixed"),
        candidate(103, eligible=False),
    ]
    made = plan(pool_of([[2, 2, 2]] * 3) + barred, per_cell=1)
    assert {made.split_of[c.key] for c in barred} == {"train"}
    assert made.cells_before[Cell("positive", "positive")] == 2


def test_what_is_tied_to_a_drawn_candidate_shares_its_split_or_is_withheld():
    tied = [candidate(0, groups=["review a"]), candidate(1, gold="mixed", groups=["review a", "text b"])]
    tied += [candidate(2, gold=None, groups=["text b"]), candidate(3)]
    made = plan(tied, per_cell=1, model_labels=("positive",))
    assert made.split_of["r1-0000001"] == made.split_of["r1-0000002"] == "withheld"
    assert {made.split_of["r1-0000000"], made.split_of["r1-0000003"]} == {"dev", "test"}


def test_groups_that_cannot_be_parted_are_the_reason_of_a_refusal():
    together = [replace(c, groups=("review a",)) for c in pool_of([[4, 4, 4]] * 3)]
    with pytest.raises(BadInput, match="without parting what shares a review.*no size is possible"):
        plan(together, per_cell=1)
    with pytest.raises(BadInput, match="without parting"):
        plan(together)


def test_ratings_are_as_even_as_the_pool_allows():
    pool = [candidate(n, rating=5 if n < 16 else 1) for n in range(40)]
    made = plan(pool, per_cell=8, model_labels=("positive",))
    assert made.unevenness == 0
    assert made.ratings[("dev", 1)] == made.ratings[("dev", 5)] == made.ratings[("test", 1)] == 4
    few = plan(pool[13:], per_cell=8, model_labels=("positive",))
    assert few.ratings[("dev", 5)] + few.ratings[("test", 5)] == 3
    assert few.unevenness == 2 * (8 - 3)


@pytest.mark.parametrize(
    ("pool", "per_cell", "words"),
    [
        ([candidate(1), candidate(1)], 1, "r1-0000001 occurs twice"),
        ([candidate(1, prediction="mixed")], 1, "prediction 'mixed'"),
        ([candidate(1)], 0, "a size of 0"),
        ([], None, "is empty"),
    ],
)
def test_impossible_input_is_refused(pool, per_cell, words):
    with pytest.raises(BadInput, match=words):
        plan(pool, per_cell=per_cell)


def test_a_search_without_time_says_so_instead_of_calling_it_impossible():
    with pytest.raises(BadInput, match="no split was found within .* 0 seconds"):
        plan(random_pool(1, reviews=300), seconds=0)


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_keeps_every_rule_on_random_pools(seed):
    pool = random_pool(seed, reviews=300)
    made = plan(pool, seed=seed)
    assert set(made.split_of) == {c.key for c in pool} and made.proven
    splits_of_group = {}
    for c in pool:
        for group in c.groups:
            splits_of_group.setdefault(group, set()).add(made.split_of[c.key])
    assert all(len(splits - {"withheld"}) <= 1 for splits in splits_of_group.values())
    assert not any({"train", "withheld"} <= splits for splits in splits_of_group.values())
    for split in HELD_OUT:
        held = [c for c in pool if made.split_of[c.key] == split]
        assert all(c.gold in MODEL_LABELS and c.winning >= 4 for c in held)
        assert Counter((c.gold, c.prediction) for c in held) == dict.fromkeys(
            product(MODEL_LABELS, repeat=2), made.per_cell
        )
    assert made.count("dev") + made.count("test") <= 0.3 * (len(pool) - made.withheld)


def best_by_brute_force(pool, model_labels, share):
    """Return (size, unevenness, withheld) of the best of all plans, trying every subset of every component."""
    components = []
    for c in pool:
        tied = [component for component in components if any(set(c.groups) & set(m.groups) for m in component)]
        components = [x for x in components if x not in tied] + [sum(tied, []) + [c]]
    ratings = len({c.rating for c in pool if c.gold in model_labels and c.winning >= 4})
    cells = list(product(model_labels, repeat=2))
    largest = len(pool) // (2 * len(cells))
    states = {((), 0)}
    for component in components:
        usable = [c for c in component if c.gold in model_labels and c.winning >= 4]
        gifts = {()} | {
            tuple((side, (c.gold, c.prediction), c.rating) for c in given)
            for side in HELD_OUT
            for size in range(1, len(usable) + 1)
            for given in combinations(usable, size)
        }
        states = {
            (tuple(sorted(drawn + gift)), withheld + (len(component) - len(gift) if gift else 0))
            for drawn, withheld in states
            for gift in gifts
            if max(Counter((side, cell) for side, cell, _ in drawn + gift).values(), default=0) <= largest
        }
    best = (0, 0, 0)
    for drawn, withheld in states:
        sizes = Counter((side, cell) for side, cell, _ in drawn)
        size = sizes[HELD_OUT[0], cells[0]]
        if any(sizes[side, cell] != size for side in HELD_OUT for cell in cells):
            continue
        if len(drawn) > share * (len(pool) - withheld) or not size:
            continue
        strata = Counter(drawn)
        every = product(HELD_OUT, cells, {c.rating for c in pool})
        low, high = size // ratings, -(-size // ratings)
        uneven = sum(max(low - strata[s], 0) + max(strata[s] - high, 0) for s in every)
        best = max(best, (size, -uneven, -withheld))
    return best


@pytest.mark.parametrize(
    ("model_labels", "golds", "candidates", "reviews", "pools"),
    [(("yes",), ("yes", "yes", "mixed"), 9, 7, 25), (("yes", "no"), ("yes", "no"), 13, 11, 12)],
)
def test_no_plan_is_better_than_the_one_found(model_labels, golds, candidates, reviews, pools):
    sizes = []
    for seed in range(pools):
        draw = random.Random(seed)
        pool = [
            candidate(
                number,
                draw.choice(golds),
                draw.choice(model_labels),
                [f"review {draw.randrange(reviews)}"],
                rating=draw.choice((1, 5)),
            )
            for number in range(candidates)
        ]
        best = best_by_brute_force(pool, model_labels, 0.8)
        sizes.append(best[0])
        if best[0]:
            made = plan(pool, model_labels=model_labels, held_out_share=0.8)
            assert (made.per_cell, -made.unevenness, -made.withheld) == best
        else:
            with pytest.raises(BadInput):
                plan(pool, model_labels=model_labels, held_out_share=0.8)
    assert sum(size > 0 for size in sizes) >= 3
