"""Arrow memory: types, rows, compaction, streams. Knows no HTTP, no MCP and no store."""
