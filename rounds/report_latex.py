"""The tables of a report as LaTeX, plain enough for any paper: only the package booktabs is needed."""

import re
from collections.abc import Iterator

from rounds.report_parts import Cell, Report, Table, cell_text, figure_columns, plain_text, table_note

TABLES_START = "% Tables of a report by dynaround"
"""How every file of tables begins."""

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # These print as other signs in the old encoding of fonts, or change their neighbour.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    # After the end of a row these two would be read as an option of it.
    "[": "{[}",
    "*": "{*}",
}


def latex(report: Report) -> str:
    """Return all tables of a report, one `table` with caption, label and note each.

    Every special character is escaped, so that no text can end a cell or call a command; other characters stay UTF-8.
    """
    head = [
        TABLES_START + r"; they need \usepackage{booktabs}; UTF-8.",
        f"% {plain_text(report.title)}",
        *(f"% {plain_text(mark)}" for mark in report.marks),
    ]
    tables = [line for section in report.sections for table in section.tables for line in _table(table, report.marks)]
    return "\n".join([*head, *tables]) + "\n"


def _table(table: Table, marks: tuple[str, ...]) -> Iterator[str]:
    title = " ".join(_sentence(part) for part in (table.title, *marks))
    yield ""
    yield r"\begin{table}"
    yield r"  \centering"
    yield rf"  \caption{{{escaped(title)}}}"
    yield rf"  \label{{tab:{table.key}}}"
    yield rf"  \begin{{tabular}}{{{''.join('r' if figure else 'l' for figure in figure_columns(table))}}}"
    yield r"    \toprule"
    yield _row([escaped(column) for column in table.columns])
    yield r"    \midrule"
    for row in table.rows:
        yield _row([_cell(cell, table.digits) for cell in row])
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    note = table_note(table)
    if note is not None:
        yield rf"  \par\smallskip{{\footnotesize {escaped(note)}\par}}"
    yield r"\end{table}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _row(cells: list[str]) -> str:
    return "    " + " & ".join(cells) + r" \\"


def _cell(cell: Cell, digits: int) -> str:
    text = cell_text(cell, digits)
    if isinstance(cell, str):
        return escaped(text)
    return escaped(text).replace("−", "$-$").replace("–", "--")


def escaped(text: str) -> str:
    """Return a text that LaTeX prints as it is, on one line, with control characters shown by their codes."""
    replaced = "".join(_ESCAPED.get(character, character) for character in plain_text(text))
    return re.sub("-(?=-)", "-{}", replaced)
