"""The two decorators of :class:`framewire.S2SPServer`, and the MCP extension that refuses unknown arguments.

A resource tool is a function that returns a table; the tool shows the columns that were asked for and publishes the
rest. A consumer tool is a function that takes a frame; the tool takes a handle and fetches the frame. Both stay the
author's own functions: what is registered is a wrapper that owns conversion in and out.
"""

from __future__ import annotations

from framewire.tools._arguments import CONSUMER_TEACHING, RESOURCE_TEACHING, describe
from framewire.tools._consumer import consumer_tool
from framewire.tools._keeper import PlaneKeeper
from framewire.tools._resource import resource_tool
from framewire.tools._signature import argument_names
from framewire.tools._stdio import signals_end_stdin
from framewire.tools._strict import Registered, StrictArguments

__all__ = [
    "CONSUMER_TEACHING",
    "RESOURCE_TEACHING",
    "PlaneKeeper",
    "Registered",
    "StrictArguments",
    "argument_names",
    "consumer_tool",
    "describe",
    "resource_tool",
    "signals_end_stdin",
]
