"""HTML pages as tests read them, and the fields of a notice."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

FIELDS: dict[str, Any] = {
    "organisation": "Bank of Example",
    "date": "3 March 2026",
    "subject": "your request for a loan",
    "reference": "A-1017",
    "system": "A computer program looks at your data and gives a score.",
    "role": "A clerk reads the score and decides.",
    "sources": ["your request of 1 March 2026", "the credit office"],
    "correct": "Please write to us. We will check it and decide again.",
    "human": "You may ask us to let a person look at it. Just call us.",
    "keep_until": "31 March 2029",
    "contact": "Call 0800 1234 or write to help@bank.example.",
}


class Page(HTMLParser):
    """A page as a browser's parser sees it: elements, texts, and whether each element is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []  # of which element, name, value
        self.texts: dict[str, list[str]] = {}  # of each kind of element, what its elements hold
        self._open: list[tuple[str, list[str]]] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes += [(name, key, value or "") for key, value in attributes]
        self._open.append((name, []))

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(name, attributes)
        self.handle_endtag(name)

    def handle_endtag(self, name: str) -> None:
        opened, texts = self._open.pop()
        assert opened == name
        self.texts.setdefault(name, []).append("".join(texts))

    def handle_data(self, text: str) -> None:
        for _, texts in self._open:
            texts.append(text)
