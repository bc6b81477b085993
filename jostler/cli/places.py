"""The places of an experiment in a bucket, from the flags that name them."""

from __future__ import annotations

from jostler.format.names import Place


def places(data_dir: str, organization: str, experiment: str) -> tuple[Place, ...]:
    """Return the experiment's place in each bucket layout that these names allow.

    An organization's bundles are in autoload/v2, with its name, or in autoload/v1, without it.

    Raises:
        ValueError: one of the names is not allowed.
    """
    layouts = [(data_dir, organization)]
    if organization and data_dir.endswith("/v1"):
        layouts = [(f"{data_dir.removesuffix('v1')}v2", organization), (data_dir, "")]
    return tuple(
        Place(data_dir=data_dir, organization=organization, experiment=experiment)
        for data_dir, organization in layouts
    )
