"""What a user installs: the wheel, opened and used outside the checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dynaround.cli import COMMANDS
from dynaround.demo_corpus import demo_reviews, demo_seeds

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dynaround", "rounds", "workers", "server")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("the tests do not lie in a checkout, so there is nothing to build")
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    return next(folder.glob("dynaround-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    pip("install", "--no-deps", "--no-index", "--no-compile", "--target", folder, wheel)
    return folder


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def outside(installed: Path, folder: Path, *command: object) -> str:
    """Run with the installed copy before everything else, from a folder that is not the checkout."""
    env = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    info = f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info/"
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if not name.startswith(info)} == ours
    assert {name.removeprefix(info) for name in names - ours} >= {"METADATA", "entry_points.txt", "licenses/LICENSE"}


@pytest.mark.parametrize(
    "name",
    [
        "dynaround/demo_data/CARD.md",
        "dynaround/demo_data/reviews.jsonl",
        "dynaround/migrations/versions/0001_first_tables.py",
        "server/static/style.css",
        "server/templates/round.html",
    ],
)
def test_the_wheel_holds_what_is_no_module(wheel: Path, name: str):
    assert zipfile.ZipFile(wheel).getinfo(name).file_size > 0


def test_the_wheel_is_small_and_says_its_license(wheel: Path):
    assert wheel.stat().st_size < 1_000_000
    with zipfile.ZipFile(wheel) as opened:
        name = next(name for name in opened.namelist() if name.endswith("/METADATA"))
        metadata = opened.read(name).decode("utf-8")
    assert "License-Expression: MIT\n" in metadata and "Requires-Python: >=3.11\n" in metadata


def test_the_installed_copy_works_outside_the_checkout(installed: Path, tmp_path: Path):
    code = """
import json, sys
from pathlib import Path
import dynaround, rounds, server, workers
from dynaround.demo_corpus import demo_reviews, demo_seeds
from dynaround.settings import create_workspace
from server.app import create_app
app = create_app(create_workspace(Path("bench")), demo=True)
client = app.test_client()
pages = [client.get(address).status_code for address in ("/", "/static/style.css", "/rounds/1")]
homes = [str(Path(package.__file__).parents[1]) for package in (dynaround, rounds, server, workers)]
print(json.dumps([homes, len(demo_reviews()), len(demo_seeds()), pages]))
"""
    homes, reviews, seeds, pages = json.loads(outside(installed, tmp_path, sys.executable, "-W", "error", "-c", code))
    assert set(homes) == {str(installed)}
    assert (reviews, seeds, pages) == (len(demo_reviews()), len(demo_seeds()), [200, 200, 404])


def test_the_installed_console_script_finds_every_command(installed: Path, tmp_path: Path):
    script = installed / "bin" / "dynaround"
    for name in COMMANDS:
        assert outside(installed, tmp_path, sys.executable, script, name, "--help").startswith("Usage: dynaround "), (
            name
        )
    assert outside(installed, tmp_path, sys.executable, script, "init", "bench").startswith("workspace ")
    assert outside(installed, tmp_path, sys.executable, script, "--version").startswith("dynaround, version ")
