"""Help texts: commands whose help shows no type of flags."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help shows no type of flags."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types_of_flags(super().get_params(ctx))


class Group(TyperGroup):
    """Commands whose help shows no type of flags."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types_of_flags(super().get_params(ctx))


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters
