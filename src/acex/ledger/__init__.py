"""Where every answer is written down once, so that it is paid for once."""

from acex.ledger.ledger import Answer, Claim, Ledger, Question

__all__ = ["Answer", "Claim", "Ledger", "Question"]
