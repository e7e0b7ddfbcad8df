"""Pictures of explanations: `*_record` computes the numbers, and each record draws itself. Nothing is queried.

A record draws onto a Figure, or onto a part of one, without pyplot: this needs no screen and leaves other figures
alone. The colours are safe for colour-blind readers, and what differs in colour also differs in shape.
"""

from acex.show.plots.explanation import (
    Kind,
    changes_record,
    counterfactuals_record,
    draw_explanation,
    draw_kind,
    images_record,
    numbers_record,
    trace_record,
)
from acex.show.plots.many import batch_record, draw_explanations, draw_groups, groups_record
from acex.show.plots.style import Picture

__all__ = [
    "Kind",
    "Picture",
    "batch_record",
    "changes_record",
    "counterfactuals_record",
    "draw_explanation",
    "draw_explanations",
    "draw_groups",
    "draw_kind",
    "groups_record",
    "images_record",
    "numbers_record",
    "trace_record",
]
