"""Op tables, one per framework, and what turns components into executables there."""

__all__: list[str] = []
