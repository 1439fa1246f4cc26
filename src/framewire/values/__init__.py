"""Python and JSON values to Arrow and back: exact, or refused by column, row and kind."""
