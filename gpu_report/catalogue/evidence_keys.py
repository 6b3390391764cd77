"""Keys of evidence (`Evidence.key`): what other code needs to know of a finding's numbers."""

ENDS_SHARE_KEY = "epoch_ends_pct"  # the share of an epoch that its end takes
STEADY_KEY = "steady_util_pct"  # mean utilisation in the steady state
WORK_AT_ENDS_KEY = "work_at_ends"  # for what share of the ends of epochs it is known what the main process did
SWAPPED_KEY = "validated_images"  # so many images validate for each that trains, and may be swapped
ENLARGED_KEY = "enlarged_pixels"  # how many times the pixels of the images on disk YOLO trains with
SLOW_IMAGES_KEY = "waited_for_images_s"  # how long training waited for images on slow storage
SLEPT_KEY = "slept_s"  # how long the machine slept in a training
ENDS_EPOCHS_KEY = "epochs_compared"  # how many epochs tell what their ends take
PAST_KEY = "past_in_training"  # the number of the training in which what held an earlier one back is over
PAUSES_KEY = "growing_pauses"  # in how many epochs a pause before the validation grew
SINCE_EPOCH_KEY = "since_epoch"  # the first epoch of those that are slower than the first ones
SLOW_COST_KEY = "slow_cost_s"  # what slow epochs took longer in all
HUNG_KEY = "hung_s"  # how long a training reported nothing before its end
OCCURRED_KEY = "occurred"  # how often something happened
GREW_COST_KEY = "grew_cost_s"  # what epochs took longer in all since they grew
GREW_IN_CALL_KEY = "grew_in_call_s"  # what the end of an epoch spends at last in a function of the user's that grew
GROWTH_KEY = "grown_by_the_end_s"  # what an epoch takes longer by the end than at the beginning
# Of evidence: what a function of the user's cost a batch at first and in the end, and what it adds to each epoch.
GROWN_FROM_KEY, GROWN_TO_KEY, GROWS_ON_KEY = "grown_from_s", "grown_to_s", "grows_on_s"
BUSY_THREAD_KEY = "busy_thread_pct"  # the share of time that a thread beside the main one ran Python
IDLE_IN_STEPS_KEY = "idle_in_steps_s"  # what of each step the GPU is idle, though its work is long and data is ready
CONVOLUTIONS_KEY = "in_convolutions_pct"  # of the idle time, in which a program stood in calls of convolutions
GARBAGE_KEY = "garbage_pct"  # the share of time that Python's garbage collector took
USER_CODE_IDLE_KEY = "user_code_idle_pct"  # the share of the time that the GPU was idle because of it
SEEN_IDLE_KEY = "seen_idle_pct"  # the share of training time in which a GPU was seen idle in it
START_WORK_KEY = "start_work_s"  # what a kind of work took of the start-up, with its words
START_AGAIN_KEY = "start_again_s"  # what each later epoch takes for the same
ON_CPU_KEY = "main_cpu_of_training"  # the CPU of a training that ran on it, as the finding says
USER_CODE_KEY = "user_code_pct"  # the share of training time that a function of the user's takes
