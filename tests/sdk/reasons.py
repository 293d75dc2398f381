"""Why our resources may differ from the SDK's: each entry is a decision, not an excuse."""

# Kinds that are recognised and are no part of the product.
OUTSIDE = {"autoMLJob": "outside: AutoML jobs are refused with a message"}

# Path, or its end, and the reason.
FILES = {}


def of(path, differences):
    """The reason for a file's differences, if there is one."""
    if not differences:
        return None
    for known, reason in FILES.items():
        if path.endswith(known):
            return reason
    return None
