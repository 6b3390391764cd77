"""Thresholds of readings, intervals and outliers, each with its unit and its reason."""

STRAY_S = 3.0  # readings above the line for less than this do not end a drop or a low interval
READING_SLACK = 0.5  # a drop of n seconds sampled every i seconds shows n/i readings give or take one: in intervals

# An epoch is marked when one of its times is over its siblings' median by all three of these: a fifth of it (what a
# person would notice), a second (what an edge seen from outside may be off), and 4 robust standard deviations.
OUTLIER_SHARE = 0.2
OUTLIER_AT_LEAST_S = 1.0
OUTLIER_Z = 4.0
OUTLIER_SIBLINGS = 4  # fewer have no typical value

TOUCHED_S = 1.0  # an epoch that shares less with a finding counts as undisturbed

MEASURED_SHARE = 0.8  # of an epoch or window: where less was sampled its utilisation and energy are not known

# What comes by the clock (a cron job, an air conditioner): so many turns in a row, each as long as the others
# but for so much. What comes sooner than that may keep to epochs.
RHYTHM_TURNS, RHYTHM_SLACK, RHYTHM_LEAST_S = 3, 0.05, 600.0
