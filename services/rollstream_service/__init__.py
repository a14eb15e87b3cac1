"""What all services share: settings, logs, health, probes, heartbeat, life cycle.

Submodules are imported by name (`rollstream_service.lifecycle`), so that an actor does not pay for the web framework of control.
"""

__all__: list[str] = []
