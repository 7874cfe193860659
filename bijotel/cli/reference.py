"""Write the reference of the command line: ``python -m bijotel.cli.reference > FILE``.

The page is what ``--help`` prints, so it cannot say anything else; a test compares the two.
"""

from __future__ import annotations

import click

from bijotel.cli.app import DEBUG_VARIABLE, cli
from bijotel.keys import SECRET_FILE_VARIABLE, SECRET_VARIABLE

_WIDTH = 80
_PREFACE = f"""\
# Command line

Made from `bijotel --help` by `python -m bijotel.cli.reference`; do not edit.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | fine |
| 1 | findings: the evidence is false |
| 2 | asked wrongly: an option, a key or a number that does not exist |
| 3 | could not check: no store, not readable, or a key that is not given |
| 130 | interrupted |

An error that nobody foresaw is 3, never 0 or 1.
A reader that closes the pipe early does not change the code.

## Output

With `--json` standard output is exactly one JSON document; an error is
`{{"error": {{"code": ..., "message": ...}}}}`.
All else goes to standard error.
Stored text is shown with control and direction characters escaped (`\\x1b`, `\\u202e`).
What stands on a terminal may be cut to its width; in a file or a pipe nothing is cut.

## Environment

| variable | meaning |
| --- | --- |
| `{SECRET_VARIABLE}` | the HMAC key, 64 hex digits |
| `{SECRET_FILE_VARIABLE}` | a file with the HMAC key, mode 0600 |
| `{DEBUG_VARIABLE}` | set: print an error's traceback too |
| `NO_COLOR`, `FORCE_COLOR`, `TERM=dumb`, `COLUMNS` | as usual; an empty one counts as unset |
"""


def render() -> str:
    """Write the page."""
    commands = [("bijotel", cli), *((f"bijotel {name}", cli.commands[name]) for name in _names())]
    return "\n".join((_PREFACE, *(_section(name, command) for name, command in commands)))


def _names() -> list[str]:
    return sorted(cli.commands)


def _section(name: str, command: click.Command) -> str:
    context = click.Context(
        command, info_name=name, terminal_width=_WIDTH, max_content_width=_WIDTH
    )
    return f"## {name}\n\n```text\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    click.echo(render(), nl=False)
