"""Invitations: signed, single use, expiring, each bound to one platform id."""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from itsdangerous import BadSignature, Signer
from sqlmodel import Session, col, select, update

from dynaround.errors import BadInput, NotAllowed
from dynaround.tables import Account, Invitation, Worker
from workers.accounts import account_of_invited
from workers.roster import PERSON, enlist, require_same_kind

# The number of a row of `Invitation`, and its signature.
_TOKEN = re.compile(r"([0-9]{1,9})\.[A-Za-z0-9_-]+")
_FORGED = "this is no invitation of this server, or not the whole of it; copy the link as it was sent to you"
_OVER = "this invitation has been used or has expired; ask whoever sent it for a new one"


def invite(session: Session, platform_id: str, secret: str, now: datetime, days: int) -> str:
    """Store an invitation and return its token, which holds nothing of the platform id.

    Raises BadInput for an empty platform id, or one of a worker who is no person.
    """
    if not platform_id.strip():
        raise BadInput("the platform id is empty; say whom to invite")
    known = session.exec(select(Worker).where(Worker.platform_id == platform_id)).one_or_none()
    if known is not None:
        require_same_kind(known, PERSON)
    invitation = Invitation(platform_id=platform_id, made_at=now, expires_at=now + timedelta(days=days))
    session.add(invitation)
    session.flush()
    return _signer(invitation, secret).sign(str(invitation.id)).decode()


def link(token: str, address: str | None, hosts: Sequence[str]) -> str:
    """Return the link to send: under `address`, or under the first host, or on this machine.

    The token stands after the #, which browsers keep to themselves, so that no log of a server or proxy holds it.
    Raises BadInput for an address without http:// or https://.
    """
    if address is None:
        address = f"https://{hosts[0]}" if hosts else "http://127.0.0.1:8765"
    if not re.fullmatch(r"https?://[^\s/#?]+/?", address):
        raise BadInput("--address is no address of a server; write it like https://bench.example.org")
    return f"{address.rstrip('/')}/join#{token}"


def accept_invitation(session: Session, token: str, secret: str, now: datetime) -> Account:
    """Use up an invitation: enlist its platform id, and return the worker's account, made where there is none.

    Raises NotAllowed for a token that is forged, expired or used. Of several at once one is let in.
    """
    read = _TOKEN.fullmatch(token)
    invitation = session.get(Invitation, int(read[1])) if read else None
    if invitation is None:
        raise NotAllowed(_FORGED)
    try:
        _signer(invitation, secret).unsign(token)
    except BadSignature:
        raise NotAllowed(_FORGED) from None
    still_open = (
        col(Invitation.id) == invitation.id,
        col(Invitation.used_at).is_(None),
        col(Invitation.expires_at) > now,
    )
    if session.exec(update(Invitation).where(*still_open).values(used_at=now)).rowcount != 1:
        raise NotAllowed(_OVER)
    return account_of_invited(session, enlist(session, invitation.platform_id, PERSON), now)


def _signer(invitation: Invitation, secret: str) -> Signer:
    # The key itself depends on the platform id and the end: a signature holds for no other row, nor for a changed one.
    bound_to = f"invitation of {invitation.platform_id} until {invitation.expires_at.isoformat()}"
    return Signer(secret, salt=bound_to, digest_method=hashlib.sha256)
