"""Labelled trees of the Stanford Sentiment Treebank: whole sentences, or every phrase once."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dynaround.corpus.fields import shown
from dynaround.corpus.rejects import ReadSummary, Rejected
from dynaround.corpus.rows import Row
from dynaround.corpus.sources import numbered_lines
from dynaround.errors import BadInput

SST_LABELS = ("negative", "negative", "neutral", "positive", "positive")
"""What the five-way labels of the Stanford Sentiment Treebank stand for, by number."""

# White space in a tree is the blank alone: three tokens of the training file hold a no-break space.
_TREE_PART = re.compile(r"\(|\)|[^ ()]+")


class TreeNode(NamedTuple):
    """One node of a tree: its label, 0 to 4, and its words from `start` to `end`."""

    label: int
    start: int
    end: int


def tree_rows(path: Path, summary: ReadSummary, *, phrases: bool = False) -> Iterator[Row | Rejected]:
    """Yield one row a tree with text, label and place ("12"), or one for each phrase that no earlier row has ("12.3").

    A phrase is the text of one node with its three-way label; texts are compared as they are, case included. Its place
    is the line and the number of the node, the root's being 1. Raises BadInput for a file of blank lines.
    """
    number = 0
    had: set[tuple[str, str]] = set()
    for line in numbered_lines(path):
        if line.problem is None and not line.text.strip():
            summary.blank_lines += 1
            continue
        number += 1
        problem = line.problem
        try:
            words, nodes = tree_nodes("" if problem else line.text.strip())
        except BadInput as malformed:
            summary.rows_read += 1
            yield Rejected(line.number, problem or str(malformed))
            continue
        for place, node in enumerate(nodes if phrases else nodes[:1], 1):
            text, label = " ".join(words[node.start : node.end]), SST_LABELS[node.label]
            if phrases:
                if (text, label) in had:
                    continue
                had.add((text, label))
            summary.rows_read += 1
            where = f"{line.number}.{place}" if phrases else str(line.number)
            yield Row(line.number, number, {"text": text, "label": label, "place": where})
    if not number:
        raise BadInput(f"{path} holds blank lines only")


def tree_nodes(tree: str) -> tuple[list[str], list[TreeNode]]:
    """Return the words of one tree, such as "(3 (2 Good) (2 food))", and its nodes, each before those that it holds.

    A node is a label and then either one word or two nodes. Raises BadInput for anything else.
    """
    words: list[str] = []
    labels: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    open_nodes: list[int] = []
    contents: list[int | None] = []  # of each open node: how many nodes it holds so far, or None for a word
    parts = iter(_TREE_PART.findall(tree))
    for part in parts:
        if labels and not contents:
            raise BadInput("malformed tree: text after the root is closed")
        if part == "(":
            label = next(parts, "")
            if label not in ("0", "1", "2", "3", "4"):
                raise BadInput(f"malformed tree: {shown(label)} stands where a label from 0 to 4 is due")
            if contents:
                held = contents[-1]
                if held is None or held == 2:
                    raise BadInput("malformed tree: a node holds more than one word or two nodes")
                contents[-1] = held + 1
            open_nodes.append(len(labels))
            labels.append(int(label))
            starts.append(len(words))
            ends.append(0)
            contents.append(0)
        elif not contents:
            raise BadInput("malformed tree: it does not begin with a bracket")
        elif part == ")":
            if contents.pop() in (0, 1):
                raise BadInput("malformed tree: a node holds neither one word nor two nodes")
            ends[open_nodes.pop()] = len(words)
        elif contents[-1] == 0:
            contents[-1] = None
            words.append(part)
        else:
            raise BadInput(f"malformed tree: the word {shown(part)} stands beside another part of its node")
    if not labels or contents:
        raise BadInput("malformed tree: a bracket is not closed")
    return words, list(map(TreeNode, labels, starts, ends))
