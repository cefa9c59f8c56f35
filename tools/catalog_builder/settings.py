"""Paths, the releases that are read, and name patterns."""

import os
import re

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(os.path.dirname(HERE), "forensics", "data")
SRC = os.environ.get("CATALOG_SRC", os.path.join(HERE, ".cache", "src"))
CACHE = os.path.join(HERE, ".cache")

VERSIONS = [
    "0.3.3",
    "0.3.6.post2",
    "0.4.1.post7",
    "0.4.2",
    "0.4.3.post4",
    "0.4.4",
    "0.4.4.post1",
    "0.4.4.post4",
    "0.4.5",
    "0.4.5.post3",
    "0.4.6.post1",
    "0.4.6.post5",
    "0.4.7",
    "0.4.7.post1",
    "0.4.8.post1",
    "0.4.9.post6",
    "0.4.10.post2",
    "0.5.1.post3",
    "0.5.2",
    "0.5.3",
    "0.5.3.post3",
    "0.5.4.post3",
    "0.5.5.post3",
    "0.5.6",
    "0.5.6.post2",
    "0.5.7",
    "0.5.8",
    "0.5.8.post1",
    "0.5.9",
    "0.5.10",
    "0.5.10.post1",
    "0.5.11",
    "0.5.12",
    "0.5.12.post1",
    "0.5.13.post1",
    "0.5.14",
    "0.5.15.post1",
    "0.5.16",
    "0.5.17",
    "0.5.18",
    "0.5.19",
    "0.5.20",
    "0.5.21",
    "0.5.22",
    "0.5.23",
]

ENV_NAME = re.compile(r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
SGL_NAME = re.compile(r"^(?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9]$")
