"""The log language: Lark grammars for headers, lines, blocks and conditions, with what turns their trees into data."""
