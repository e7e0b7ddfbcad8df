"""Pictures of an explanation: `*_record` works out the numbers, `draw_*` draws them. Nothing is asked.

A drawing goes onto a Figure, or onto a part of one, without pyplot: it works without a screen, and leaves
the figures of others alone. Colours are those that the colour-blind tell apart, and whatever differs in
colour differs in shape too.
"""

from acex.plots.changes import Change, Changes, changes_record, draw_changes
from acex.plots.images import Board, Images, board_record, draw_board, draw_images, images_record
from acex.plots.plane import Plane, draw_plane, plane_record
from acex.plots.trace import Trace, draw_trace, trace_record
from acex.plots.whole import Picture, draw_explanation

__all__ = [
    "Board",
    "Change",
    "Changes",
    "Images",
    "Picture",
    "Plane",
    "Trace",
    "board_record",
    "changes_record",
    "draw_board",
    "draw_changes",
    "draw_explanation",
    "draw_images",
    "draw_plane",
    "draw_trace",
    "images_record",
    "plane_record",
    "trace_record",
]
