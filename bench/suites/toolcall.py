"""toolcall: two MCP servers over stdio and an agent: from the call of a resource tool to a frame in a consumer tool."""

from __future__ import annotations

from functools import partial

from bench.contenders import Contender
from bench.results import Record
from bench.session import Session, versions_of

AGENTS = {"framewire": "bench.toolcall.agents:framewire", "mcp-sd": "bench.toolcall.agents:mcp_sd"}


def run(session: Session) -> None:
    """400,000 x 5 ``list[dict]`` (fewer with ``--quick``)."""
    for contender in session.choose(*AGENTS):
        session.attempt(f"toolcall {contender.name}", partial(_measure, session, contender))


def _measure(session: Session, contender: Contender) -> None:
    plan = session.plan
    # The reference takes about ten seconds for each call of 400,000 rows.
    with session.child(contender, timeout_seconds=600) as agent:
        got = agent.call(AGENTS[contender.name], rows=plan.rows, repeats=plan.repeats, warmup=plan.warmup)
        session.add(
            Record(
                suite="toolcall",
                contender=contender.name,
                case="list[dict] to frame",
                samples=tuple(got["seconds"]),
                rows=plan.rows,
                columns=5,
                client_peak_rss_bytes=agent.peak_rss_bytes(),
                server_peak_rss_bytes=got["server_peak"],
                versions=versions_of(contender),
            )
        )
