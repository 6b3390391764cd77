"""Many run folders: each is analysed once, into tables that a report of all of them is made of."""
