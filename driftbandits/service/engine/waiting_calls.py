"""Calls for bandits that are being revived or rebuilt, and are not here yet."""

from collections.abc import Sequence

from driftbandits.service.engine.commands import Call

MOST_WAITING = 200  # for one bandit


class WaitingCalls:
    def __init__(self) -> None:
        self._calls: dict[str, list[Call]] = {}  # by bandit

    def __contains__(self, bandit: str) -> bool:
        return bandit in self._calls

    def begin(self, bandit: str, calls: Sequence[Call] = ()) -> None:
        """Lets calls wait for this bandit from now on."""
        self._calls[bandit] = list(calls)

    def add(self, bandit: str, calls: list[Call]) -> list[Call]:
        """Adds calls; returns those for which there is no room."""
        waiting = self._calls[bandit]
        room = max(MOST_WAITING - len(waiting), 0)
        waiting += calls[:room]
        return calls[room:]

    def is_first(self, bandit: str, call: Call) -> bool:
        return self._calls.get(bandit, [])[:1] == [call]

    def end(self, bandit: str) -> list[Call]:
        """Ends the wait for a bandit; returns its calls."""
        return self._calls.pop(bandit)

    def all(self) -> list[Call]:
        return [call for calls in self._calls.values() for call in calls]

    def clear(self) -> list[Call]:
        """Ends all waits; returns the calls."""
        calls, self._calls = self.all(), {}
        return calls
