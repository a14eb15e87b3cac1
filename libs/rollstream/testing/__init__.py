"""For tests of your own components: `component_test(component, spaces)`. Nothing in Rollstream itself imports this."""

from rollstream.graph.component_test import QUICK_MODES, Comparison, component_test
from rollstream.graph.modes.executables import MODES

__all__ = ["MODES", "QUICK_MODES", "Comparison", "component_test"]
