"""What authors and validators of sentiment sentences are told: meanings, rules, worked examples, and questions."""

from dynaround.task import Guide, Question, WorkedExample

_TRUE_FALSE = ("true", "false")

GUIDE = Guide(
    version="2026-11-30",
    meanings={
        "positive": "Someone who reads it would say that the writer is pleased, overall.",
        "negative": "Someone who reads it would say that the writer is displeased, overall.",
        "neutral": "It shows no feeling for or against anything: a fact, a plan, a question.",
        "mixed": "It is for and against at once, and neither side clearly outweighs the other.",
    },
    author_rules=(
        "Write one sentence, in English, as a real person might write it in a review.",
        "Other people must agree with the target label. Only the model should be wrong.",
        "Write it yourself. Text made by a machine is not accepted.",
        "No names of private people, no insults, no gibberish, no spelling tricks that a reader would stumble over.",
        "If a sentence to start from is shown, change as much of it as you like, but change something.",
    ),
    author_examples=(
        WorkedExample(
            "I would not trade this place for any other in town.",
            "positive",
            "It says that the place is the best one, though it is built from words that sound like refusing.",
        ),
        WorkedExample(
            "If you enjoy waiting, you will adore this bank.",
            "negative",
            "The words are warm, the meaning is a complaint about waiting.",
        ),
        WorkedExample(
            "They moved the awful old sign to the back door last Tuesday.",
            "neutral",
            "It reports what happened; 'awful' is about an old sign and judges nothing that the text is about.",
        ),
        WorkedExample(
            "The cake was a dream and the coffee was a punishment.",
            "mixed",
            "Both sides weigh the same. Mixed is never your target label, so do not write sentences like this.",
        ),
    ),
    author_quiz=(
        Question(
            "agree",
            "The best result: the model is wrong about your sentence, and other people agree with the target label.",
            _TRUE_FALSE,
            "true",
            "A sentence that people read differently too is no fault of the model.",
        ),
        Question(
            "unclear",
            "A sentence so unclear that nobody can tell what it means is a good way to fool the model.",
            _TRUE_FALSE,
            "false",
            "Five people will read it, and it only counts if they agree with the target label.",
        ),
        Question(
            "machine",
            "You may let a chat program write the sentences for you.",
            _TRUE_FALSE,
            "false",
            "Only sentences that people wrote are wanted.",
        ),
        Question(
            "prompt",
            "When a sentence to start from is shown, you may send it off unchanged.",
            _TRUE_FALSE,
            "false",
            "Something must change; how much is up to you.",
        ),
        Question(
            "target",
            "The target label is 'negative'. Which sentence fits it?",
            (
                "The lamp works, and I have never slept better.",
                "Yes, the lamp works, if you hold the switch down all night.",
                "The lamp stands on the left of the bed.",
            ),
            "Yes, the lamp works, if you hold the switch down all night.",
            "Only this one shows someone who is displeased.",
        ),
    ),
    names={"positive": "Positive", "negative": "Negative", "neutral": "No sentiment", "mixed": "Mixed"},
    validator_rules=(
        "Judge what the sentence says, by itself. Do not guess what stood before or after it.",
        "Say how the writer feels about what they write of, not how you feel about it.",
        "If both good and bad are said and one clearly outweighs the other, choose that one; else choose mixed.",
        "If no feeling is shown at all, choose no sentiment, also where the news itself is good or bad.",
        "Answer alone, and without a program. There is no answer that is expected of you.",
        "If you cannot judge a sentence, say why instead of choosing.",
    ),
    validator_examples=(
        WorkedExample(
            "My sister has already booked the same cabin for next summer.",
            "positive",
            "Nobody is praised in words, but people come back to a place that they liked.",
        ),
        WorkedExample(
            "By the time the plumber rang back, we had learnt to do without hot water.",
            "negative",
            "It is said with a smile, and it still complains of a long wait.",
        ),
        WorkedExample(
            "There are two lifts, and the one on the left goes down to the garage.",
            "neutral",
            "It only describes. No feeling for or against anything is shown.",
        ),
        WorkedExample(
            "Lovely songs all evening, though I could not hear one of them over the people at the bar.",
            "mixed",
            "The music was good and the noise spoilt it; neither outweighs the other.",
        ),
        WorkedExample(
            "The stairs are steep and the towels thin, but I would stay there again tomorrow.",
            "positive",
            "Two small complaints, and then a verdict that outweighs them.",
        ),
        WorkedExample(
            "Has anyone tried the new ferry since they moved the timetable?",
            "neutral",
            "A question that takes no side.",
        ),
    ),
    validator_quiz=(
        Question(
            "whose",
            "The sentence praises a team that you dislike. Whose feeling do you judge?",
            ("The writer's", "My own"),
            "The writer's",
            "What you think of the subject does not matter here.",
        ),
        Question(
            "outweighs",
            "One small thing is criticised, and the whole is clearly praised. What do you choose?",
            ("Positive", "Negative", "Mixed"),
            "Positive",
            "Mixed is only for sentences in which neither side clearly outweighs the other.",
        ),
        Question(
            "fact",
            "'The museum is closed on Mondays.' What do you choose?",
            ("Negative", "No sentiment", "Mixed"),
            "No sentiment",
            "It may be bad news for somebody, but the sentence shows no feeling about it.",
        ),
        Question(
            "irony",
            "'Wonderful, another hour on hold with that song.' What do you choose?",
            ("Positive", "Negative", "No sentiment"),
            "Negative",
            "The word is kind and the meaning is not. Judge the meaning.",
        ),
        Question(
            "unreadable",
            "A sentence is in a language that you do not know. What do you do?",
            ("Guess", "Choose mixed", "Say that I cannot judge it, and why"),
            "Say that I cannot judge it, and why",
            "A guess would count like everybody else's answer.",
        ),
    ),
    flag_reasons={
        "language": "It is not in English",
        "unreadable": "It cannot be read or makes no sense",
        "offensive": "It is offensive",
        "private": "It names a private person or tells private facts",
    },
)
