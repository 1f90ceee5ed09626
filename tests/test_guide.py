"""What people are told about every kind of task: whole, and of its own labels."""

import pytest

from dynaround.task import Guide, Task
from dynaround.tasks import TASKS
from tests.test_seam import ASKING


@pytest.mark.parametrize("task", [*TASKS.values(), ASKING], ids=lambda task: task.name)
def test_a_guide_explains_every_label_and_its_questions_can_be_answered(task: Task):
    guide: Guide = task.guide
    assert list(guide.meanings) == list(guide.names) == list(task.labels)
    assert len(set(guide.names.values())) == len(task.labels)
    assert {example.label for example in (*guide.author_examples, *guide.validator_examples)} <= set(task.labels)
    for questions in (guide.author_quiz, guide.validator_quiz):
        assert len({question.key for question in questions}) == len(questions) > 0
        for question in questions:
            assert question.right in question.choices and len(set(question.choices)) == len(question.choices) > 1
    assert guide.flag_reasons and guide.validator_rules


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_six_worked_examples_show_every_label_and_no_text_is_told_twice(task: Task):
    guide = task.guide
    texts = [example.text for example in (*guide.author_examples, *guide.validator_examples)]
    assert len(guide.validator_examples) == 6 and len(set(texts)) == len(texts)
    assert {example.label for example in guide.validator_examples} == set(task.labels)
