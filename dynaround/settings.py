"""Typed settings of a workspace (defaults, `dynaround.toml`, DYNAROUND_* variables), and where its folders are."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)
from sqlalchemy import URL, Engine

from dynaround.database import migrate, open_engine, require_current
from dynaround.errors import BadInput, Busy, NotFound

CONFIG_NAME, DATABASE_NAME = "dynaround.toml", "dynaround.sqlite"
SECRET_CHARACTERS = 32
"""The least length of the secret."""
SECRET_COMMAND = "dynaround secret"

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")

CONFIG_TEMPLATE = """\
# Settings of this dynaround workspace. Every line may be left out; what stands here are the defaults.
# A variable of the same name in capitals with DYNAROUND_ before it (DYNAROUND_DATABASE_URL) wins over this file.

# Where the facts are kept. Empty: the SQLite file dynaround.sqlite in this folder.
# For several server processes: "postgresql://user:password@host/name" (pip install 'dynaround[postgres]').
database_url = ""

# The encoder that `train` starts from: "minilm" (comes with the install), a folder, or a name on a model hub.
encoder = "minilm"

# Arithmetic of predictions: "float32", "bfloat16", or "auto": bfloat16 (twice as fast) where the processor has it.
# A sentence whose two best labels lie within .02 is decided by float32 on the sentence alone, either way.
precision = "float32"

# What predicts: "torch", "openvino" (pip install 'dynaround[openvino]'), or "auto". With "auto" here and above, the
# fastest that this machine has and that agrees with float32 on a sample. The defaults say the same on every machine.
back_end = "torch"

# Threads for training and prediction. 0: all cores. The same weights come out only with the same number.
threads = 0

# What cookies, forms and invitations are signed with: at least 32 characters that nobody can guess, the same for all
# server processes; `dynaround secret` prints one. Better in the variable DYNAROUND_SECRET than in this file.
# Another secret logs everybody out and ends all invitations. The demo makes its own.
secret = ""

# The names under which people open the server, without port: ["bench.example.org"]. Empty: this machine alone
# (localhost, 127.0.0.1), which is all that `dynaround serve` answers to. As a variable: DYNAROUND_HOSTS='["NAME"]'.
hosts = []

# Cookies travel over https alone, except where the server answers only under names of this machine. Turn this off only
# to try the server without TLS in a closed network: whoever reads the traffic could take over a log-in.
secure_cookies = true

# How many proxies stand before the server and add to X-Forwarded-For and -Proto. 0: none, and such headers are ignored.
proxies = 0

# How many hours a log-in lasts.
visit_hours = 12
"""


class Settings(BaseSettings):
    """What a workspace is set to; unknown names in the file are refused."""

    model_config = SettingsConfigDict(env_prefix="DYNAROUND_", extra="forbid")

    database_url: str = ""
    encoder: str = "minilm"
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    back_end: Literal["auto", "torch", "openvino"] = "torch"
    threads: int = Field(default=0, ge=0)
    secret: str = Field(default="", repr=False)
    hosts: list[str] = []
    secure_cookies: bool = True
    proxies: int = Field(default=0, ge=0)
    visit_hours: int = Field(default=12, ge=1)

    @field_validator("secret")
    @classmethod
    def refuse_short_secret(cls, secret: str) -> str:
        """Refuse a secret that could be guessed; none at all is refused by what needs it."""
        if secret and len(secret) < SECRET_CHARACTERS:
            found = f"{len(secret)} characters are too few, {SECRET_CHARACTERS} are the least"
            raise ValueError(f"{found}; take what `{SECRET_COMMAND}` prints")
        return secret

    @field_validator("hosts")
    @classmethod
    def refuse_addresses(cls, hosts: list[str]) -> list[str]:
        """Refuse what is more than a name, since it would match no request."""
        for host in hosts:
            if not _HOST.fullmatch(host):
                raise ValueError(f"{host!r} is no name of a host; write it without https://, port and path")
        return hosts

    def required_secret(self) -> str:
        """Return the secret; raise BadInput saying how to set it where there is none."""
        if not self.secret:
            raise BadInput(
                "no secret is set to sign cookies, forms and invitations with; set DYNAROUND_SECRET, or `secret` in "
                f"{CONFIG_NAME}, to what `{SECRET_COMMAND}` prints"
            )
        return self.secret

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take arguments, then the environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(config: Path) -> Settings:
    """Read the settings; raise BadInput naming the file and the first line or field that is wrong."""

    class FromFile(Settings):
        model_config = SettingsConfigDict(env_prefix="DYNAROUND_", extra="forbid", toml_file=config)

    try:
        return FromFile()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{config} is not TOML: {error}") from error
    except SettingsError as error:
        raise BadInput(f'a DYNAROUND_ variable cannot be read: {error}; write a list as ["NAME"]') from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"setting {name!r} of {config} (or DYNAROUND_{name.upper()}): {first['msg']}") from error


class Workspace:
    """One folder with a database, models, releases and the config file."""

    def __init__(self, root: Path):
        self.root = root.resolve()
        if not (self.root / CONFIG_NAME).is_file():
            raise NotFound(f"{self.root} is no dynaround workspace (no {CONFIG_NAME}); run: dynaround init {root}")
        self.settings = load_settings(self.root / CONFIG_NAME)
        self.models = self.root / "models"
        self.releases = self.root / "releases"
        self.work = self.root / "work"
        self._engine: Engine | None = None
        # Not a string: a question mark in the folder's name would begin the options of a URL.
        in_folder = URL.create("sqlite", database=str(self.root / DATABASE_NAME))
        self.database_url: str | URL = self.settings.database_url or in_folder

    def recorded(self, spec: str) -> str:
        """Return KIND:PATH as manifests and plans keep it: below the workspace relative to it, elsewhere absolute."""
        kind, _, path = spec.partition(":")
        place = Path(path).resolve()
        return f"{kind}:{place.relative_to(self.root) if place.is_relative_to(self.root) else place}"

    def located(self, spec: str) -> str:
        """Return a kept KIND:PATH as one that can be opened from anywhere."""
        kind, _, path = spec.partition(":")
        return f"{kind}:{self.root / path}"

    def engine(self) -> Engine:
        """Return the engine on the database, opened once; it must be at this version's revision."""
        if self._engine is None:
            engine = open_engine(self.database_url)
            require_current(engine)
            self._engine = engine
        return self._engine

    def close(self) -> None:
        """Close the connections to the database."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    @contextmanager
    def exclusively(self, job: str) -> Iterator[None]:
        """Hold the lock of one long job; raise Busy where another process does. The kernel frees it on any death."""
        self.work.mkdir(exist_ok=True)
        lock = FileLock(self.work / f"{job}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise Busy(
                f"another dynaround process is at {job} in {self.root}; wait for it to end, then run again"
            ) from error
        try:
            yield
        finally:
            lock.release()


def create_workspace(root: Path) -> Workspace:
    """Make folders, config file and database, or bring a workspace up to date; nothing is overwritten."""
    if root.exists() and not root.is_dir():
        raise BadInput(f"{root} is a file; name a folder for the workspace")
    config = root / CONFIG_NAME
    try:
        for folder in (root, root / "models", root / "releases", root / "work"):
            folder.mkdir(parents=True, exist_ok=True)
        if not config.exists():
            config.write_text(CONFIG_TEMPLATE, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"no workspace can be made in {root} ({error}); name another folder") from error
    workspace = Workspace(root)
    engine = open_engine(workspace.database_url)
    try:
        migrate(engine)
    finally:
        engine.dispose()
    return workspace
