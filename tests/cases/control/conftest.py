"""The cases run on the same whole control as the integration tests: its fixtures are taken over from there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_PATH = Path(__file__).parents[2] / "integration" / "control" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("rollstream_control_fixtures", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
_FIXTURES = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _FIXTURES
_SPEC.loader.exec_module(_FIXTURES)

start_control = _FIXTURES.start_control
control = _FIXTURES.control
eventually = _FIXTURES.eventually
