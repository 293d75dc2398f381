"""Differences from the reference that we stand by, each with its reason.

A key names steps (`experiment/rename *`), or one place in their answers (`wire/run get # ok/body/run/info/*`); `*`, `?` and `[]`
match as in file names. An entry that no longer explains anything fails the test, so the table never outlives its reasons.
"""

EMPTY_FILE = "the size of an empty file is 0; the reference leaves it out"
TYPED = "a value of a wrong type is refused; the reference drops it and goes on"
NO_EXPERIMENT = "a missing experiment is told as a missing parameter; the reference shows an error of its database"
PATHS = "`..` and back slashes in a path are refused before anything is looked for"
NULLS = "null is as good as left out"

ALLOWED = {
    "artifact/delete folder": "a folder goes with its last file",
    "artifact/download all": "see `artifact/log per%cent.txt`",
    "artifact/get a folder": "refused in MLflow's envelope; the reference sends its framework's",
    "artifact/get with back slash": PATHS,
    "artifact/get with dots within": PATHS,
    "artifact/list * # *file_size": EMPTY_FILE,
    "artifact/list # *file_size": EMPTY_FILE,
    "artifact/list names": "see `artifact/log per%cent.txt`",
    "artifact/log per%cent.txt": "the client does not escape `%`, so the name is not UTF-8: refused; the reference keeps another name",
    "artifact/put with back slash": PATHS,
    "artifact/put with dots within": PATHS,
    "history/interval, 10": "thinned so that lows and highs stay; the reference takes every n-th point",
    "history/interval, steps 0 to 2000, 5": "thinned so that lows and highs stay; the reference takes every n-th point",
    "history/interval for the ui": "thinned so that lows and highs stay; the reference takes every n-th point",
    "history/max results x": TYPED,
    "input/in another run, read": "a run shows the dataset it named; the reference that of the first run that named one alike",
    "models/max results -1": "a negative number is refused",
    "models/search by dataset": "models are found by the dataset their metric names",
    "models/search status *": "models are found by their status; the reference compares its word with a number",
    "run/create in no experiment": NO_EXPERIMENT,
    "search/order attributes.`Run Name`": "a run's name may be ordered by under each of its spellings",
    "webhook/create, unknown status": TYPED,
    "wire/batch by run_uuid # ok/class": "told as a missing parameter",
    "wire/batch metric value a word": TYPED,
    "wire/batch null metrics": NULLS,
    "wire/batch param value number": TYPED,
    "wire/batch read": "see `wire/batch param value number`",
    "wire/body NaN bare": "not JSON; clients send the word",
    "wire/body bad utf-8 # ok/class": "told as what it is: no JSON",
    "wire/body not json # ok/class": "told as what it is: no JSON",
    "wire/experiment id None": NO_EXPERIMENT,
    "wire/experiment max results 1.5": "a fraction loses its rest here as it does everywhere else",
    "wire/experiment max results None": NULLS,
    "wire/experiment max results True": "read as it is everywhere else",
    "wire/run create, empty body": NO_EXPERIMENT,
    "wire/run update, * status": TYPED,
    "wire/search max results None": NULLS,
    "wire/tags *": TYPED,
    "wire/version": "this server is not MLflow and has no version of it",
}
