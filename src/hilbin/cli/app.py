"""The verbs of ``hilbin``. A new one is a module with a command, and a line here."""

from collections.abc import Callable

import typer

from hilbin.cli.demo import demo_command
from hilbin.cli.eval import eval_command
from hilbin.cli.explain import explain_command
from hilbin.cli.info import info_command
from hilbin.cli.predict import predict_command
from hilbin.cli.train import train_command

VERBS: dict[str, Callable[..., None]] = {
    "train": train_command,
    "eval": eval_command,
    "predict": predict_command,
    "explain": explain_command,
    "info": info_command,
    "demo": demo_command,
}

app = typer.Typer(
    name="hilbin",
    help="Images in, labels out: learning with kernels on histograms and images.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _name, _command in VERBS.items():
    app.command(_name)(_command)
