"""Names of users by their numbers. A list of users may lie across a network: nobody waits long for it."""

import pwd
import threading

LONGEST_S = 0.1  # an answer from this machine takes under 1 ms, one of sssd's cache a few


class UserNames:
    """Asks for each name once; where the answer is late or there is none, the number is the name for good."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def of(self, uid: int) -> str:
        """Return a user's name, else the number."""
        if uid not in self._names:
            self._names[uid] = self._ask(uid) or str(uid)
        return self._names[uid]

    @staticmethod
    def _ask(uid: int) -> str | None:
        answers: list[str] = []

        def ask() -> None:
            try:
                answers.append(pwd.getpwuid(uid).pw_name)
            except (KeyError, OSError, OverflowError):
                return  # in a container ids often have no name

        thread = threading.Thread(target=ask, name="user name", daemon=True)
        thread.start()
        thread.join(LONGEST_S)
        return answers[0] if answers else None
