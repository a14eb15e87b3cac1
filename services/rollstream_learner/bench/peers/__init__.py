"""What users would write without Rollstream, and other libraries: measured in turn with ours."""

__all__: list[str] = []
