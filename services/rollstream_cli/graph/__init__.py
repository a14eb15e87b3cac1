"""What `rollstream graph report` prints and draws."""

__all__: list[str] = []
