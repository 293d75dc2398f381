"""Why our resources may differ from the SDK's: each entry is a decision, not an excuse."""

import re

# Kinds that are recognised and are no part of the product.
OUTSIDE = {"autoMLJob": "outside: AutoML jobs are refused with a message"}

# A pattern that every difference of a file must match, and the reason.
RULES = [
    (r"^ours sends nothing: .*is a placeholder",
     "the file is a template whose blanks are not filled in; ours asks for them, the SDK sends them as names"),
    (r"^ours sends nothing: .*`automl` nodes cannot run",
     "the pipeline has an AutoML node; AutoML is no part of the product"),
    (r"/tags/[^/]+: ours \"[^\"]*\", the SDK's [-0-9.]+$",
     "tags are texts; ours keeps what the file says, the SDK makes a number of it and 2.10 becomes 2.1"),
    (r"/dataImportDefinition/dataType: ours \"mltable\", the SDK's \"uri_folder\"$",
     "ours keeps the type that the file gives to imported data, the SDK sends its default"),
    (r"/inputs/test_split_ratio: only ours",
     "the component declares no such input; the SDK drops it in silence, ours leaves the word to the server"),
]


def of(differences):
    """The reason for a file's differences, where one reason fits them all."""
    for pattern, reason in RULES:
        if differences and all(re.search(pattern, line) for line in differences):
            return reason
    return None
