"""Where an actor finds peers that compute together. Importing this imports torch; `rollstream.graph` itself never does."""

from rollstream.graph.backends.torch.peer_group import PeerGroup, open_meeting

__all__ = ["PeerGroup", "open_meeting"]
