"""Pictures of an explanation: `*_record` works out the numbers, `draw_*` draws them. Nothing is asked.

A drawing goes onto a Figure, or onto a part of one, without pyplot: it works without a screen, and leaves
the figures of others alone. Colours are those that the colour-blind tell apart, and whatever differs in
colour differs in shape too.
"""

from acex.show.plots.axis import Axis
from acex.show.plots.batch import Batch, Changed, batch_record, draw_batch
from acex.show.plots.boundary import Boundary, boundary_record, draw_boundary
from acex.show.plots.changes import Change, Changes, changes_record, draw_changes
from acex.show.plots.counterfactuals import (
    Cell,
    Counterfactual,
    Counterfactuals,
    counterfactuals_record,
    draw_counterfactuals,
)
from acex.show.plots.groups import GroupsRecord, draw_groups, groups_record
from acex.show.plots.images import Board, Images, board_record, draw_board, draw_images, images_record
from acex.show.plots.numbers import Numbers, draw_numbers, numbers_record
from acex.show.plots.plane import Plane, draw_plane, plane_record
from acex.show.plots.trace import Trace, draw_trace, trace_record
from acex.show.plots.whole import Kind, Picture, draw_explanation, draw_explanations, draw_kind

__all__ = [
    "Axis",
    "Batch",
    "Board",
    "Boundary",
    "Cell",
    "Change",
    "Changed",
    "Changes",
    "Counterfactual",
    "Counterfactuals",
    "GroupsRecord",
    "Images",
    "Kind",
    "Numbers",
    "Picture",
    "Plane",
    "Trace",
    "batch_record",
    "board_record",
    "boundary_record",
    "changes_record",
    "counterfactuals_record",
    "draw_batch",
    "draw_board",
    "draw_boundary",
    "draw_changes",
    "draw_counterfactuals",
    "draw_explanation",
    "draw_explanations",
    "draw_groups",
    "draw_images",
    "draw_kind",
    "draw_numbers",
    "draw_plane",
    "draw_trace",
    "groups_record",
    "images_record",
    "numbers_record",
    "plane_record",
    "trace_record",
]
