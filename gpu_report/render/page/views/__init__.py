"""What the template is given, in words and numbers ready to print.

Nothing here is NaN: a missing number is None or reads n/a. Text from outside stands as it came; the page escapes it.
"""
