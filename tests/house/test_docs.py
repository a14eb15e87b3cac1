"""Documentation says what the code says: the reference is current, links resolve, commands exist, snippets are the files."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from source_tree import ROOT

from rollstream_cli.reference import page
from rollstream_cli.reference.commands import command_names, options_of
from rollstream_cli.reference.models import settings_of
from rollstream_cli.reference.results import REPLAY_BENCH_KEYS, SUMMARY_KEYS, TABLE_KEYS, TRAIN_BENCH_KEYS, Key

ROLES = ("service", "control", "replay", "learner", "actor")
WORDS_OF_A_TABLE = {"id", "rows_of", "writers_wait_for", "samplers_wait_for", "blocked", "spec"}
"""What a shard says in words; reports and summaries hold its numbers only."""
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not {".venv", ".tools", "node_modules", "runs", ".pytest_cache", ".hypothesis"} & set(path.relative_to(ROOT).parts)
)
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^[ ]*```(\w*)\n(.*?)^[ ]*```$", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def outside_fences(text: str) -> str:
    return FENCE.sub("", text)


def shell_lines(text: str) -> list[str]:
    """Lines of shell in fenced blocks, and code in running text."""
    lines = [
        line.strip() for kind, block in FENCE.findall(text) if kind in ("sh", "bash", "console") for line in block.splitlines()
    ]
    return lines + re.findall(r"`([^`\n]+)`", outside_fences(text))


# -- the reference


def test_the_reference_is_what_the_code_would_write() -> None:
    assert (ROOT / "docs" / "reference.md").read_text() == page(), "run `make docs`"


def keys_written(name: str, *functions: str) -> set[str]:
    """String keys of dictionaries that functions of a module make or fill."""
    found: set[str] = set()
    tree = ast.parse((ROOT / name).read_text())
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in functions):
        for node in ast.walk(function):
            if isinstance(node, ast.Dict):
                found |= {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
            if isinstance(node, ast.Assign):
                slices = [target.slice for target in node.targets if isinstance(target, ast.Subscript)]
                found |= {one.value for one in slices if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


def declared(keys: tuple[Key, ...]) -> set[str]:
    return {key.name for key in keys}


def test_every_key_of_a_summary_is_declared_with_its_unit() -> None:
    written = keys_written("libs/rollstream/learning/summary.py", "to_json")
    written |= keys_written("services/rollstream_cli/summary.py", "with_usage")
    written |= keys_written("services/rollstream_cli/training.py", "_finish")
    assert written == declared(SUMMARY_KEYS)


def test_every_key_of_a_training_measurement_is_declared() -> None:
    written = keys_written("services/rollstream_cli/measure.py", "run", "rates_between", "_cost")
    assert written == declared(TRAIN_BENCH_KEYS)


def test_every_key_of_a_replay_measurement_is_declared() -> None:
    written = keys_written(
        "services/rollstream_replay/bench/simple.py", "measure", "_insert", "_sample_strictly", "_sample_ahead"
    )
    passed = {"insert_cpu_us_per_item", "sample_cpu_us_per_item"}  # filled in by `_cpu` under the name it is given
    assert written | passed == declared(REPLAY_BENCH_KEYS)


def test_every_number_that_a_table_says_is_declared() -> None:
    written = keys_written("libs/rollstream/replay/inspection.py", "describe_index")
    written |= keys_written("services/rollstream_replay/table_report.py", "describe_table")
    assert written - WORDS_OF_A_TABLE == declared(TABLE_KEYS)


# -- links


def anchors(path: Path) -> set[str]:
    """Anchors of headings as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", outside_fences(path.read_text()), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for groups in LINK.findall(outside_fences(path.read_text())):
        target = groups[0] or groups[1]
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            broken.append(target)
    assert not broken


# -- commands, targets, variables


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_targets_that_are_named_exist(path: Path) -> None:
    named = {found for line in shell_lines(path.read_text()) for found in re.findall(r"^(?:\$ )?make ([a-z][a-z0-9-]*)", line)}
    assert named <= targets()


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_commands_and_options_that_are_named_exist(path: Path) -> None:
    names = command_names()
    wrong = []
    for line in shell_lines(path.read_text()):
        found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*rollstream ([a-z][a-z ]*[a-z]|[a-z]+)(?= |$|\|)(.*)", line)
        if found is None or "|" in line or "…" in line:
            continue
        words = found.group(1).split()
        command = next((name for name in (" ".join(words[:2]), words[0]) if name in names), None)
        groups = {name.split()[0] for name in names if " " in name}
        if command is None and not (words[0] in groups and len(words) == 1):
            wrong.append(line)
        elif command is not None:
            options = set(re.findall(r"(?<= )(--[a-z][a-z-]*)", line))
            wrong += [f"{line}: {option}" for option in sorted(options - options_of(command)) if command != "bench replay"]
    assert not wrong


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_variables_that_are_named_exist(path: Path) -> None:
    known = {f"ROLLSTREAM_{name.upper()}" for role in ROLES for name in settings_of(role).model_fields}
    known |= {"ROLLSTREAM_URL", "ROLLSTREAM_TOKEN", "ROLLSTREAM_CACHE_DIRECTORY"}
    for file in ("docker-compose.yml", "Makefile"):
        known |= set(re.findall(r"ROLLSTREAM_[A-Z0-9_]+", (ROOT / file).read_text()))
    named = set(re.findall(r"ROLLSTREAM_[A-Z0-9_]+[A-Z0-9]", path.read_text()))
    assert named <= known


# -- what must be there


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_the_page_of_algorithms_shows_flows_as_they_are(name: str) -> None:
    source = (ROOT / "libs" / "rollstream" / "algorithms" / name / "flow.py").read_text()
    assert f"```python\n{source}```" in (ROOT / "docs" / "algorithms.md").read_text()


def test_every_algorithm_and_every_service_has_a_readme() -> None:
    folders = [*ROOT.glob("libs/rollstream/algorithms/*/"), *ROOT.glob("services/*/")]
    bare = [name_of(folder) for folder in folders if (folder / "__init__.py").exists() and not (folder / "README.md").exists()]
    assert not bare


def test_every_page_is_listed() -> None:
    index, decisions = (ROOT / "docs" / "index.md").read_text(), (ROOT / "docs" / "decisions" / "README.md").read_text()
    pages = [path.name for path in (ROOT / "docs").glob("*.md") if path.name != "index.md"]
    assert [name for name in pages if f"({name})" not in index] == []
    assert [path.name for path in (ROOT / "docs" / "decisions").glob("0*.md") if f"({path.name})" not in decisions] == []
