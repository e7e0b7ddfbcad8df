"""What tests share."""

from __future__ import annotations

import os

import pytest

needs_data = pytest.mark.skipif(
    "ACEX_DATA" not in os.environ, reason="needs the paper's data sets: set ACEX_DATA to their folder"
)
