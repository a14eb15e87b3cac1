"""A flow as a picture made of text: one line a chain, a tree with every operator on its line, or a Mermaid graph."""

from rollstream.flow.drawing.chains import chains
from rollstream.flow.drawing.mermaid import mermaid
from rollstream.flow.drawing.tree import TreeLine, tree, tree_lines

__all__ = ["TreeLine", "chains", "mermaid", "tree", "tree_lines"]
