"""What commands print."""


def only_line(result):
    """Return the one line of a command that failed."""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("hilbin: ")
    assert result.stdout == ""
    return lines[0]
