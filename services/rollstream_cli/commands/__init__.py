"""One module for each group of commands; what a command needs is imported when it runs."""

__all__: list[str] = []
