"""Names of users by their numbers. A list of users may lie across a network: nobody waits long for it."""

import pwd
import threading

WAIT_S = 0.02  # an answer from this machine takes under 1 ms, one of sssd's cache a few


class UserNames:
    """Asks for each name once, in a thread; until the answer is there, and without one, the number is the name."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def of(self, uid: int) -> str:
        """Return a user's name, else the number."""
        if uid not in self._names:
            self._names[uid] = str(uid)
            thread = threading.Thread(target=self._ask, args=(uid,), name="user name", daemon=True)
            thread.start()
            thread.join(WAIT_S)
        return self._names[uid]

    def _ask(self, uid: int) -> None:
        try:
            self._names[uid] = pwd.getpwuid(uid).pw_name
        except (KeyError, OSError, OverflowError):
            return  # in a container ids often have no name
