"""What an observation must show to a policy that needs it."""

from jax import Array

from driftbandits import check


def shown(name: str, values: Array | None, shape: tuple[int, ...], setting: str) -> Array:
    """The values, if the observation has them in this shape, as a setting of the spec says."""
    if values is None or values.shape != shape:
        given = None if values is None else values.shape
        check.fail(f"{name} of an observation", f"of shape {shape}, as {setting} says", given)
    return values
