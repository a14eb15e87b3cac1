"""The learner service: runs the dataflow of one experiment at a time, under a lease."""

__all__: list[str] = []
