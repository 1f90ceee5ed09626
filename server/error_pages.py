"""The one place that turns an error into a page: its status, its title, and a sentence on what to do."""

from flask import Flask, Response, g, render_template
from flask_wtf.csrf import CSRFError
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

from dynaround.errors import Busy, DynaroundError, IllegalMove, NotAllowed, NotFound, Unavailable

STATUS: dict[type[DynaroundError], int] = {
    NotAllowed: 403,
    NotFound: 404,
    IllegalMove: 409,
    Busy: 409,
    Unavailable: 503,
}
"""The status of errors for people; all others have 400."""

TITLES = {
    400: "This cannot be done",
    403: "Not for this account",
    404: "Not here",
    405: "Not in this way",
    409: "Not now",
    413: "Too much at once",
    500: "An error in dynaround",
    503: "Not at this moment",
}
SENTENCES = {
    404: "There is no page at this address; the start page is a good place to go on.",
    405: "This address takes no such request; go back and use the links and buttons of the pages.",
    413: "More was sent than a form can hold; go back and shorten it.",
    500: "The page could not be made. What went wrong stands in the log of the server.",
}
FORM_TOO_OLD = (
    "Nothing was stored: this form is too old, or was not made for this log-in. "
    "Go back, load the page again, and send it once more."
)


def status_of(error: DynaroundError) -> int:
    """Return the HTTP status that an error for people has."""
    return STATUS.get(type(error), 400)


def register(app: Flask) -> None:
    """Let the application turn every error into a page of one shape."""
    app.register_error_handler(DynaroundError, error_page)
    app.register_error_handler(HTTPException, error_page)


def error_page(error: DynaroundError | HTTPException) -> AnyResponse:
    """Return the page of an error; a bug is logged with its traceback and shown without it."""
    if isinstance(error, DynaroundError):
        answer: AnyResponse = Response(status=status_of(error))
        sentence = f"{str(error)[:1].upper()}{str(error)[1:]}."
    else:
        answer = error.get_response()
        sentence = SENTENCES.get(answer.status_code, error.description or error.name)
    if isinstance(error, CSRFError):
        sentence = FORM_TOO_OLD
    # An error may come before it is known who asks.
    g.setdefault("account", None)
    title = TITLES.get(answer.status_code, answer.status)
    answer.data = render_template("error.html", title=title, sentence=sentence)
    answer.content_type = "text/html; charset=utf-8"
    return answer
