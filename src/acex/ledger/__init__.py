"""Where every answer is written down once, so that it is paid for once."""

from acex.ledger.entries import Answer, Ask, Asked, Claim, Question, Record
from acex.ledger.forms import Scores, as_vote, canonical, is_vote, label_text, query_id, without_vote
from acex.ledger.ledger import Ledger

__all__ = [
    "Answer",
    "Ask",
    "Asked",
    "Claim",
    "Ledger",
    "Question",
    "Record",
    "Scores",
    "as_vote",
    "canonical",
    "is_vote",
    "label_text",
    "query_id",
    "without_vote",
]
