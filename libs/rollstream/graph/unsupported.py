"""The error of a mode that cannot do what a component asks: it names the operator, and on the way out gets the component's path."""

from __future__ import annotations

from rollstream.errors import ConfigError

__all__ = ["UnsupportedOp"]


class UnsupportedOp(ConfigError):
    """Raised by op tables; the innermost API call that it passes adds where it was (`locate`)."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.where = ""

    def locate(self, *, path: str, component: str, api: str) -> None:
        """Say that it was in this place; the first place stays."""
        if not self.where:
            self.where = f"{path or '(root)'}: {component}.{api}"
            self.args = (f"{self.where}: {self.message}",)
