"""Tool call to frame: a resource tool returns rows on one MCP server, a consumer tool gets a Polars frame on another."""
