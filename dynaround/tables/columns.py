"""What all table classes share: names of constraints, moments in UTC, and JSON columns."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Column, DateTime, Dialect
from sqlalchemy.types import TypeDecorator
from sqlmodel import SQLModel

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite keeps no zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a moment without a zone: it would be read as another one elsewhere."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("moments are stored with their time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment with its zone."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def json_column(nullable: bool = False) -> Any:
    """Return a new column of plain data; None is SQL's NULL."""
    return Column(JSON(none_as_null=True), nullable=nullable)


def moment_column(nullable: bool = False) -> Any:
    """Return a new column of moments in UTC."""
    return Column(UtcTime(), nullable=nullable)
